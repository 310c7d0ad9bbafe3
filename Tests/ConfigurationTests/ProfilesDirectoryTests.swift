import GATT
import Glibc
import TestSupport
import Testing

@testable import Configuration

@Suite struct ProfilesDirectoryTests {
  private static let button =
    #""properties":{"keys":{"service":"ffe0","characteristic":"ffe1","access":["notify"],"type":"uint8"}}"#
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try #require(mkdir(folder.path + "/profiles.d", 0o700) == 0)
  }

  private func load(_ more: String = "") throws(ConfigurationErrors) -> Configuration {
    let text = #"{"profiles_directory":"profiles.d"\#(more)}"#
    guard let file = try? folder.write(text, to: "config.json") else { fatalError("no folder") }
    return try ConfigurationFile.load(path: file).configuration
  }

  private func failure(_ more: String = "") -> String? {
    do throws(ConfigurationErrors) {
      _ = try load(more)
      return nil
    } catch {
      return error.description.replacing(folder.path + "/", with: "")
    }
  }

  @Test func profilesOfAllFilesAreLoaded() throws {
    try folder.write(#"{"b":{\#(Self.button)},"a":{\#(Self.button)}}"#, to: "profiles.d/2.json")
    try folder.write(#"{"c":{\#(Self.button)}}"#, to: "profiles.d/1.json")
    try folder.write("{}", to: "profiles.d/empty.json")
    for name in ["README", ".hidden.json", "old.json~"] { try folder.write("{", to: "profiles.d/\(name)") }
    let own = #","profiles":{"d":{\#(Self.button)}},"devices":[{"match":{"name":"x"},"profile":"a"}]"#
    let configuration = try load(own)
    #expect(configuration.profiles.map(\.name) == ["c", "b", "a", "d"])
    #expect(configuration.profile(of: configuration.devices[0].options).name == "a")
    // A reload detects changes in the folder.
    try folder.write("{}", to: "profiles.d/1.json")
    let plan = try load(own).changes(from: configuration)
    #expect(plan.waiting == [])
    #expect(plan.configuration.profiles.map(\.name) == ["b", "a", "d"])
  }

  /// An example of the documents is copied as it stands there, or a profile without its name.
  @Test func partOfConfigurationSaysWhatBelongsIntoTheFile() throws {
    try folder.write(
      #"{"profiles":{"heart":{\#(Self.button)}},"devices":[]}"#, to: "profiles.d/heart.json")
    #expect(
      failure() == """
        profiles.d/heart.json:1:2: profiles: this is a part of config.json \
        (put only what is within "profiles" into this file: {"heart": {…}})
        """)
    try folder.write("{\(Self.button)}", to: "profiles.d/heart.json")
    #expect(
      failure()
        == #"profiles.d/heart.json:1:2: properties: the profile has no name (put all of it into {"heart": {…}})"#
    )
    // A profile may have these names.
    try folder.write(
      #"{"profiles":{\#(Self.button)},"properties":{\#(Self.button)}}"#, to: "profiles.d/heart.json")
    #expect(failure() == nil)
  }

  @Test func errorsHaveFileAndPosition() throws {
    try folder.write("{\"a\":{\n\"propertis\":{}}}", to: "profiles.d/a.json")
    #expect(
      failure() == """
        profiles.d/a.json:2:1: a.propertis: unknown key (did you mean properties?)
        profiles.d/a.json:1:6: a.properties: this is missing
        """)
    try folder.write("{,", to: "profiles.d/a.json")
    #expect(failure()?.hasPrefix("profiles.d/a.json:1:2: ") == true)
    try folder.write("[]", to: "profiles.d/a.json")
    #expect(failure() == "profiles.d/a.json:1:1: expected an object, found a list")
    try folder.write(#"{"microbit":{\#(Self.button)}}"#, to: "profiles.d/a.json")
    #expect(failure()?.contains("the profile microbit is built in") == true)
  }

  @Test func duplicateProfileNamesAreErrors() throws {
    try folder.write(#"{"a":{\#(Self.button)}}"#, to: "profiles.d/1.json")
    #expect(
      failure(#","profiles":{"a":{\#(Self.button)}}"#)
        == "config.json:1:48: profiles.a: profiles.d/1.json already has this profile")
    try folder.write(#"{"a":{\#(Self.button)}}"#, to: "profiles.d/2.json")
    #expect(failure() == "profiles.d/2.json:1:2: a: profiles.d/1.json already has this profile")
  }

  @Test func missingFolderIsAnError() throws {
    try #require(rmdir(folder.path + "/profiles.d") == 0)
    #expect(
      failure() == "config.json:1:23: profiles_directory: profiles.d: No such file or directory")
    try folder.write("", to: "profiles.d")
    #expect(failure()?.hasSuffix("profiles.d: Not a directory") == true)
    #expect(failure(#","mqtt":7"#)?.contains("profiles_directory") == true)
  }

  @Test func folderWithTooManyFilesIsRefused() throws {
    for number in 0...1000 { try folder.write("{}", to: "profiles.d/\(number).json") }
    #expect(
      failure() == "config.json:1:23: profiles_directory: profiles.d: 1001 files, the maximum is 1000")
  }
}
