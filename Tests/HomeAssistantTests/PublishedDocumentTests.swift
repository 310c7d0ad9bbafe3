import Configuration
import EventLoop
import Testing

@testable import HomeAssistant

/// When a device is announced again because another gateway has announced it.
@Suite struct PublishedDocumentTests {
  private static func here(isOnline: Bool = true, notices: Int = 0) -> PublishedDocument.Here {
    PublishedDocument.Here(gateway: GatewayID("hall")!, owner: .this, isOnline: isOnline, notices: notices)
  }

  private static let other = GatewayID("attic")!
  private let now = Moment.now

  private func published() -> PublishedDocument {
    var document = PublishedDocument()
    #expect(document.publish(1, at: now, Self.here()) == true)
    #expect(document.publish(1, at: now, Self.here()) == false)
    return document
  }

  @Test func documentOfAnotherGatewayStaysUntilItsInfoArrives() {
    var document = published()
    #expect(document.received(from: Self.other, sendsInfo: false, Self.here()) == [.announce])
    #expect(document.publish(1, at: now, Self.here()) == true)
    #expect(document.received(from: Self.other, sendsInfo: false, Self.here()) == [.report])
    #expect(document.publish(1, at: now, Self.here()) == false)
    #expect(document.publish(1, at: now, Self.here(notices: 1)) == true)
    #expect(document.publish(1, at: now, Self.here(notices: 1)) == false)
  }

  @Test func documentOfAnotherGatewayStaysUntilTheDeviceIsOnline() {
    var document = published()
    #expect(document.received(from: Self.other, sendsInfo: false, Self.here(isOnline: false)) == [])
    #expect(document.publish(1, at: now, Self.here(isOnline: false)) == false)
    #expect(document.publish(1, at: now, Self.here()) == true)
    #expect(document.publish(1, at: now, Self.here()) == false)
  }

  /// Home Assistant loses parts of a document that arrives while it handles a link, and the other way round.
  @Test func linkComesAfterThePublishedDocumentAndBeforeThePauseOfTheNext() {
    var document = PublishedDocument()
    #expect(document.link(at: now) == false)
    document = published()
    #expect(!document.isPausing(at: now + .seconds(5)))
    #expect(document.link(at: now + .seconds(5)) == true)
    #expect(document.isPausing(at: now + .milliseconds(5999)) && !document.isPausing(at: now + .seconds(6)))
    document.clear(at: now)
    #expect(document.link(at: now + .seconds(5)) == false)
  }
}
