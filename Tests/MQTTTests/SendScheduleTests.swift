import Testing

@testable import MQTT

@Suite struct SendScheduleTests {
  @Test func nothingIsSentBeforeAdmission() {
    var schedule = SendSchedule(isAdmitted: false)
    #expect(schedule.queued(isUrgent: true, in: 1) == .wait)
    schedule.admit()
    #expect(schedule.queued(isUrgent: false, in: 1) == .atEndOfIteration)
  }

  @Test func fourMessagesPerIterationAreSentAtOnce() {
    var schedule = SendSchedule(isAdmitted: true)
    for _ in 0..<4 { #expect(schedule.queued(isUrgent: true, in: 1) == .now) }
    #expect(schedule.queued(isUrgent: true, in: 1) == .atEndOfIteration)
    #expect(schedule.queued(isUrgent: true, in: 2) == .now)
  }
}
