import TestSupport
import Testing

/// Simulated peripherals with generated values.
@Suite struct GeneratedValueTests {
  @Test("Generated values, and values replayed from a CSV file, are published on their topics")
  func generatedValues() async throws {
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.profilesDirectory = repositoryPath("deploy/profiles")
    plan.entries = """
      {"match":{"identifier":"E6:7A:00:00:00:02"},"profile":"battery","id":"battery"},
      {"match":{"name_prefix":"BBC micro:bit"},"id":"kitchen","period":100}
      """
    plan.files["recorded.csv"] = """
      time,device,property,value
      2026-11-22T10:30:15.000Z,kitchen,temperature,-7
      2026-11-22T10:30:16.000Z,kitchen,temperature,41
      """
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator([
        "--devices", "1", "--generate", "temperature=replay:\(fixture.folder.path)/recorded.csv",
        "--profiles-directory", repositoryPath("deploy/profiles"), "--profile", "battery",
        "--generate", "battery=ramp:100:90:-1@50",
      ])
      for payload in ["95", "90", "100"] { try await fixture.message("battery/battery", payload) }
      for payload in ["-7", "41"] { try await fixture.message("kitchen/temperature", payload) }
    }
  }
}
