import Testing

@testable import Devices

/// Sessions that are connected only on demand.
extension LinkMachineTests {
  @Test func sessionIsIdleAfterTheVisit() {
    var bench = Self.onDemand.live()
    #expect(bench.wait == nil)
    #expect(bench.take(.visitEnded) == [.offline, .disconnect])
    #expect(bench.disconnectCompleted() == [] && bench.state == .idle)
    #expect(bench.range(false) == [] && bench.range(true) == [])
    #expect(bench.take(.handedOver) == [] && bench.state == .idle)
    bench = live
    #expect(bench.take(.visitEnded) == [] && bench.state == .live, "a permanent link is not ended")
  }

  @Test func isConnectedOnDemand() {
    var bench = idle
    #expect(bench.demanded() == [.connect])
    #expect(bench.demanded() == [])
    #expect(bench.failed(Self.aborted).count == 1 && bench.timer() == [.connect], "a failed visit")
    bench = idle
    #expect(bench.reconnect() == [.connect])
    bench = idle
    _ = bench.range(false)
    #expect(bench.demanded() == [] && bench.state == .absent)
    #expect(bench.range(true) == [.connect])
  }

  @Test func demandDuringDisconnectIsMetAfterwards() {
    var bench = Self.onDemand.live()
    _ = bench.take(.visitEnded)
    #expect(bench.demanded() == [] && bench.state == .leaving)
    expectConnectsAtOnce(&bench)
    // The visit that failed is repeated, and meets the demand too.
    bench = Self.onDemand.leaving()
    #expect(bench.demanded() == [])
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(1))
  }

  @Test func visitThatAnotherGatewayHasMadeFirstIsGivenUp() {
    for before in [Self.onDemand, Self.onDemand.waiting()] {
      var bench = before
      #expect(bench.take(.handedOver) == [] && bench.state == .idle && bench.wait == nil)
    }
    for before in [Self.onDemand.awaitingServices(), Self.onDemand.subscribing(), Self.onDemand.live()] {
      var bench = before
      #expect(bench.take(.handedOver).last == .disconnect)
      #expect(bench.disconnectCompleted() == [] && bench.state == .idle)
    }
    var bench = Self.onDemand.leaving()
    #expect(bench.take(.handedOver) == [])
    #expect(bench.disconnectCompleted() == [] && bench.state == .idle, "it is not tried again")
  }

  @Test func attemptThatIsGivenUpGoesOn() {
    var withdrawn = Self.onDemand.connecting()
    #expect(withdrawn.take(.handedOver) == [] && withdrawn.state == .connecting)
    // What it makes is ended, or is nothing.
    for result in [Machine.Connection.connected, .unsuitable(lacks: [])] {
      var bench = withdrawn
      #expect(bench.connected(result) == [.disconnect])
      #expect(bench.disconnectCompleted() == [] && bench.state == .idle)
      #expect(bench.demanded() == [.connect])
      #expect(bench.connected() == [.subscribe])
    }
    var bench = withdrawn
    #expect(bench.failed(Self.aborted) == [] && bench.state == .idle)
    // A visit is overdue, or a user wants a link.
    bench = withdrawn
    #expect(bench.demanded() == [] && bench.connected() == [.subscribe])
    bench = withdrawn
    #expect(bench.reconnect() == [] && bench.connected() == [.subscribe])
  }
}
