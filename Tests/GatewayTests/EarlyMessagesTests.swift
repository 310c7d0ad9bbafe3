import Testing

@testable import Gateway
@testable import MQTT

@Suite struct EarlyMessagesTests {
  private func message(_ size: Int) -> MQTTReceived {
    MQTTReceived(
      topic: TopicName("t")!, payload: [UInt8](repeating: 0, count: size), qos: .atLeastOnce, retain: false)
  }

  @Test func theyAreTakenInTheirOrderAndOnce() {
    var early = EarlyMessages()
    for size in [3, 1, 2] { early.append(message(size)) }
    #expect(early.takeAll().map(\.payload.count) == [3, 1, 2])
    #expect(early.takeAll().isEmpty)
  }

  @Test func whatComesBeyondTheBoundIsLostAndCounted() {
    var early = EarlyMessages()
    early.append(message(1_000_000))
    early.append(message(100_000))
    early.append(message(1))
    #expect(early.lost == 1)
    #expect(early.takeAll().map(\.payload.count) == [1_000_000, 1])
    #expect(early.lost == 0)
    // Empty ones are not for nothing.
    for _ in 0..<20_000 { early.append(message(0)) }
    #expect(early.lost > 9_000)
  }
}
