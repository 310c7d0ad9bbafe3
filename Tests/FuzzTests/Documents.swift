import GATT
import Glibc

@testable import Configuration
@testable import JSON

/// A JSON text.
@Sendable func checkJSON(_ bytes: [UInt8]) {
  let value: JSONValue
  do throws(JSONSyntaxError) {
    value = try JSONParser.parse(bytes)
  } catch {
    expect(isPosition(error.position, in: bytes), "\(error)")
    expectVisible("\(error)")
    return
  }
  expect((try? JSONParser.locate(bytes))?.value == value, "the positions change the value")
  expect(isWritten(value), "written and read: another value than \(value)")
  let text = Array(value.text().utf8)
  expect((try? JSONParser.parse(text)) == value, "written for people and read: another value than \(value)")
  let plain = String(decoding: value.bytes, as: UTF8.self)
  expectVisible(plain)
}

/// Whether it is the same after it was written and read.
func isWritten(_ value: JSONValue) -> Bool {
  let again = try? JSONParser.parse(value.bytes)
  // Texts are also compared byte by byte: to `String` different encodings of é are equal.
  return again == value && again?.bytes == value.bytes
}

private func isPosition(_ position: TextPosition, in bytes: [UInt8]) -> Bool {
  let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  guard lines.indices.contains(position.line - 1) else { return false }
  return (1...lines[position.line - 1].count + 1).contains(position.column)
}

/// A config.json, and a message for the whole fleet.
@Sendable func checkConfiguration(_ bytes: [UInt8]) {
  if case .failure(let errors) = FleetConfiguration.parse(bytes) { check(errors, in: bytes) }
  switch Configuration.parse(bytes) {
  case .failure(let errors): check(errors, in: bytes)
  case .success(let configuration):
    for warning in configuration.warnings() { expectVisible("\(warning)") }
    for device in configuration.devices {
      let profile = configuration.profile(of: device.options)
      for name in configuration.desired(of: device.options).keys {
        expect(profile.property(named: name) != nil, "\(name) is not used")
      }
    }
    let written = configuration.json.bytes
    let again = try? Configuration.parse(written).get()
    expect(again == configuration, "written and read: other than \(String(decoding: written, as: UTF8.self))")
  }
}

private func check(_ errors: ConfigurationErrors, in bytes: [UInt8]) {
  expect(!errors.errors.isEmpty, "no error")
  for error in errors.errors {
    expectVisible("\(error)")
    expect(error.position.map { isPosition($0, in: bytes) } == true, "\(error) without a position")
  }
}

/// Profiles as in config.json up to the first zero byte, and then a value of each property.
@Sendable func checkProfile(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let text = input.bytes(upTo: 0)
  let value = input.remainder()
  guard let document = try? JSONParser.locate(text) else { return }
  var problems: [ConfigurationError] = []
  guard
    let profiles = ConfigurationRule<[Profile]>.profiles.read(document.value, nil, .root, &problems),
    problems.isEmpty
  else {
    return check(ConfigurationErrors(errors: problems.map { $0.located(in: document) }), in: text)
  }
  for profile in profiles {
    for property in profile.properties { check(value, of: property) }
    var errors: [ConfigurationError] = []
    let json = profile.json
    let again = json.flatMap { ConfigurationRule<Profile>.profile.read($0, nil, .root, &errors) }
    expect(again?.properties == profile.properties, "written and read: other properties, \(errors)")
    expect(again?.alive == profile.alive && again?.requires == profile.requires, "written and read: other")
  }
}
