import Testing

@testable import MQTT

@Suite struct SubscriptionsTests {
  private typealias Request = Subscriptions.Request

  @Test func aNewConnectionSubscribesInTheSameOrder() {
    var subscriptions = Subscriptions()
    #expect(
      subscriptions.add([filter("z"), filter("y")], []) == [
        Request(filters: [filter("z"), filter("y")], options: [])
      ])
    _ = subscriptions.add([filter("b")], .noLocal)
    _ = subscriptions.add([filter("a")], .noLocal)
    // Subscribing again moves the filter to the end.
    _ = subscriptions.add([filter("z")], [])
    #expect(
      subscriptions.all == [
        Request(filters: [filter("y")], options: []),
        Request(filters: [filter("b"), filter("a")], options: .noLocal),
        Request(filters: [filter("z")], options: []),
      ])
    #expect(subscriptions.remove([filter("b"), filter("c"), filter("z")]) == [filter("b"), filter("z")])
    #expect(subscriptions.all.map(\.filters) == [[filter("y")], [filter("a")]])
  }

  @Test func packetHasAtMostEightFilters() {
    var subscriptions = Subscriptions()
    let filters = (0..<20).map { filter("t/\($0)") }
    for one in filters { _ = subscriptions.add([one], []) }
    #expect(subscriptions.all.map(\.filters.count) == [8, 8, 4])
    #expect(subscriptions.all.flatMap(\.filters) == filters)
  }

  @Test func eachFilterHasItsReasonCode() {
    var subscriptions = Subscriptions()
    let request = subscriptions.add([filter("a"), filter("b")], [])[0]
    subscriptions.sent(request, as: 7)
    #expect(subscriptions.acknowledged(8, [1]).isEmpty)
    let acknowledged = subscriptions.acknowledged(7, [1, 135])
    #expect(acknowledged.map(\.filter) == [filter("a"), filter("b")])
    #expect(acknowledged.map(\.reason) == [1, 135])
    subscriptions.sent(request, as: 9)
    subscriptions.disconnected()
    #expect(subscriptions.acknowledged(9, [1, 1]).isEmpty)
  }

  @Test func whatIsRefusedIsAskedForAgainUntilItIsGranted() {
    var subscriptions = Subscriptions()
    let request = subscriptions.add([filter("a"), filter("b"), filter("c")], .noLocal)[0]
    subscriptions.sent(request, as: 7)
    _ = subscriptions.acknowledged(7, [0x87, 1, 0x97])
    #expect(subscriptions.refused == [Request(filters: [filter("a"), filter("c")], options: .noLocal)])
    #expect(subscriptions.refusal(of: filter("a")) == 0x87 && subscriptions.refusal(of: filter("b")) == nil)
    _ = subscriptions.remove([filter("c")])
    subscriptions.sent(subscriptions.refused[0], as: 8)
    #expect(subscriptions.refused == [Request(filters: [filter("a")], options: .noLocal)])
    _ = subscriptions.acknowledged(8, [1])
    #expect(subscriptions.refused.isEmpty)
    subscriptions.sent(request, as: 9)
    _ = subscriptions.acknowledged(9, [0x80, 0x80, 0x80])
    subscriptions.disconnected()
    #expect(subscriptions.refused.isEmpty, "a new connection subscribes to all")
  }
}
