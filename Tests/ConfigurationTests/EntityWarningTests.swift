import GATT
import TestSupport
import Testing

@testable import Configuration

/// What Home Assistant would refuse is a warning.
@Suite struct EntityWarningTests {
  /// The warnings of a property `a` of the profile `x`, without the place of the profile.
  private static func warnings(_ property: String) throws -> [String] {
    let access =
      property.contains(#""kind":"event""#) ? #"["notify"]"# : #"["read","write"],"write":"request""#
    let keys = #""service":"1111","characteristic":"2222","access":"# + access
    let text = #"{"profiles":{"x":{"properties":{"a":{\#(keys),\#(property)}}}}}"#
    return try Configuration.parse(Array(text.utf8)).get().warnings().map {
      String($0.description.dropFirst("profiles.x.properties.a.".count))
    }
  }

  private static func sensor(_ property: String, _ keys: String) -> String {
    #"\#(property)"home_assistant":{"platform":"sensor","name":"A",\#(keys)}"#
  }

  private static func event(_ word: String) -> String {
    #""kind":"event","type":"uint8","values":{"1":"\#(word)"},"home_assistant":{"platform":"event","name":"A","device_class":"doorbell"}"#
  }

  private static let refused: [(String, String)] = [
    (
      sensor(#""type":"uint8","unit":"C","#, #""device_class":"temperature""#),
      #"unit: "C" is no unit of temperature (temperature takes °C, °F or K)"#
    ),
    (
      sensor(#""type":"uint8","unit":"C","#, #""device_class":"temperature","unit":"Grad""#),
      #"home_assistant.unit: "Grad" is no unit of temperature (temperature takes °C, °F or K)"#
    ),
    (
      sensor(#""type":"uint8","#, #""device_class":"battery""#),
      "home_assistant.device_class: the unit is missing (battery takes %)"
    ),
    (
      sensor(#""type":"uint8","unit":"pH","#, #""device_class":"ph""#),
      #"unit: "pH" is no unit of ph (ph has no unit)"#
    ),
    (
      sensor(#""type":"uint8","unit":"°C","#, #""device_class":"temperatur""#),
      #"home_assistant.device_class: Home Assistant knows no "temperatur" here, unless it is newer than this gateway (did you mean temperature?)"#
    ),
    (
      sensor(#""type":"uint8","unit":"kWh","#, #""device_class":"energy","state_class":"measurement""#),
      "home_assistant.state_class: energy is no measurement (use total_increasing)"
    ),
    (
      sensor(#""type":"uint8","#, #""device_class":"enum","state_class":"measurement""#),
      "home_assistant.device_class: enum is for text, and this is a number (remove it)"
    ),
    (
      sensor(#""type":"utf8","#, #""device_class":"temperature""#),
      "home_assistant.device_class: temperature is for numbers, and this is none (remove it)"
    ),
    (
      #""type":"bool","home_assistant":{"platform":"binary_sensor","name":"A","device_class":"dor"}"#,
      #"home_assistant.device_class: Home Assistant knows no "dor" here, unless it is newer than this gateway (did you mean door?)"#
    ),
    (
      #""type":"utf8","home_assistant":{"platform":"text","name":"A","device_class":"door"}"#,
      "home_assistant.device_class: this platform has no device classes (remove it)"
    ),
    (
      sensor(
        #""fields":[{"name":"p","type":"uint8","unit":"mmHg"},{"name":"pulse","type":"uint8","unit":"bpm"}],"#,
        #""device_class":"pressure""#),
      #"home_assistant.device_class: "bpm" is no unit of pressure (pressure takes Pa, mPa, hPa, kPa, bar, mbar, cbar, mmHg, inHg, inH₂O, psi or atm)"#
    ),
    (
      sensor(#""type":"uint8","unit":"MPa","#, #""device_class":"atmospheric_pressure""#),
      #"unit: "MPa" is no unit of atmospheric_pressure (atmospheric_pressure takes Pa, mPa, hPa, kPa, bar, mbar, cbar, mmHg, inHg, inH₂O, psi or atm)"#
    ),
    (
      sensor(#""type":"uint8","unit":"BTU/h","#, #""device_class":"power""#),
      #"unit: "BTU/h" is no unit of power (power takes W, mW, kW, MW, GW or TW)"#
    ),
    (
      event("pressed"),
      "home_assistant.device_class: Home Assistant 2027.4 refuses a doorbell without the word ring (name the word ring, or remove the class)"
    ),
  ]

  @Test(arguments: refused)
  func whatHomeAssistantRefusesIsAWarning(property: String, warning: String) throws {
    #expect(try Self.warnings(property) == [warning])
  }

  private static let taken: [String] = [
    sensor(#""type":"uint8","unit":"°C","#, #""device_class":"temperature","state_class":"measurement""#),
    sensor(#""type":"uint8","unit":"kWh","#, #""device_class":"energy","state_class":"total_increasing""#),
    sensor(#""type":"uint8","unit":"\u03bcg/m³","#, #""device_class":"pm10""#),
    event("ring"),
    sensor(#""type":"uint8","unit":"thm","#, #""device_class":"energy""#),
    sensor(#""type":"uint8","unit":"µA","#, #""device_class":"current""#),
    sensor(#""type":"uint8","unit":"\u03bcA","#, #""device_class":"current""#),
    sensor(#""type":"uint8","unit":"Bq/m³","#, #""device_class":"radon""#),
    #""type":"bool","home_assistant":{"platform":"binary_sensor","name":"A","device_class":"glass_break"}"#,
    sensor(#""type":"uint8","#, #""device_class":"power_factor""#),
    sensor(#""type":"uint8","unit":"EUR","#, #""device_class":"monetary""#),
    sensor(#""type":"utf8","#, #""device_class":"timestamp""#),
    sensor(#""type":"uint8","values":{"0":"off"},"#, #""device_class":"enum""#),
    sensor(
      #""fields":[{"name":"t","type":"uint8","unit":"°C"},{"name":"site","type":"uint8","values":{"0":"ear"}}],"#,
      #""device_class":"temperature""#),
  ]

  @Test(arguments: taken)
  func whatHomeAssistantTakesIsNone(property: String) throws {
    #expect(try Self.warnings(property) == [])
  }

  @Test func aDescribedValueHasAUnitOfItsClass() throws {
    let text =
      #"{"devices":[{"match":{"name":"x"},"values":{"soil":{"unit":"C","device_class":"temperature"},"t":{"device_class":"temperature"}}}]}"#
    #expect(
      try Configuration.parse(Array(text.utf8)).get().warnings().map(\.description) == [
        #"devices[0].values.soil.unit: "C" is no unit of temperature (temperature takes °C, °F or K)"#
      ])
  }

  /// A number is the total of its class where Home Assistant takes nothing else.
  @Test(arguments: [
    (#""energy","unit":"kWh""#, nil), (#""energy""#, nil), (#""monetary","unit":"EUR""#, nil),
    (#""timestamp""#, "timestamp is for text, and this is a number (remove it)"),
    (#""door""#, #"Home Assistant knows no "door" here, unless it is newer than this gateway"#),
  ])
  func aDescribedValueHasAClassOfNumbers(value: String, problem: String?) throws {
    let text = #"{"devices":[{"match":{"name":"x"},"values":{"v":{"device_class":"# + value + "}}}]}"
    #expect(
      try Configuration.parse(Array(text.utf8)).get().warnings().map(\.description)
        == (problem.map { ["devices[0].values.v.device_class: \($0)"] } ?? []))
  }

  @Test func suppliedProfilesHaveNone() throws {
    let supplied = try ProfilesDirectory.profiles(in: repositoryPath("deploy/profiles"))
    for profile in Profile.builtIn + [.radio] + supplied {
      #expect(profile.warnings(at: .root) == [], "\(profile.name)")
    }
  }

  /// The warning of a profile in another file names that file.
  @Test func theFileIsNamed() throws {
    let folder = try TemporaryFolder()
    let property =
      #"{"service":"1111","characteristic":"2222","access":["read"],"type":"uint8","home_assistant":{"platform":"sensor","name":"A","device_class":"x"}}"#
    let profile = #"{"properties":{"a":\#(property)}}"#
    try folder.write(#"{"p":\#(profile)}"#, to: "p.json")
    let own = try folder.write(
      #"{"profiles_directory":"\#(folder.path)","profiles":{"q":\#(profile)}}"#, to: "config")
    let warnings = try ConfigurationFile.load(path: own).warnings.map { $0.description(in: "c") }
    try #require(warnings.count == 2)
    #expect(warnings[0].hasPrefix("c:1:") && warnings[0].contains("profiles.q.properties.a"))
    #expect(warnings[1].hasPrefix("\(folder.path)/p.json:1:") && warnings[1].contains(": p.properties.a"))
  }
}
