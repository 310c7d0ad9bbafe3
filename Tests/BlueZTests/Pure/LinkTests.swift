import DBus
import EventLoop
import GATT
import Testing

@testable import BlueZ

@Suite @LoopActor struct LinkTests {
  /// bluetoothd may have answered just before the characteristic was removed.
  @Test func anAnswerAfterTheRemovalOfItsCharacteristicIsCountedOnce() {
    let link = Link(ByteSignals(of: "Value", on: "org.example"))
    func begin(_ path: String) -> Exchange {
      let characteristic = Characteristic(
        uuid: BluetoothUUID(short: 1), service: BluetoothUUID(short: 2), flags: [], path: path, generation: 0,
        peripheral: PeripheralID(path: "/d"))
      let exchange = Exchange(of: 2, on: characteristic, over: link) { _ in }
      link.begin(exchange)
      return exchange
    }
    let removed = begin("/d/1")
    link.end { $0.path == "/d/1" }
    #expect(!link.hasUnanswered)
    let other = begin("/d/2")
    removed.answer(0, .success([]))
    removed.answer(1, .success([]))
    #expect(link.hasUnanswered)
    other.answer(0, .success([]))
    #expect(link.hasUnanswered)
    other.answer(1, .success([]))
    #expect(!link.hasUnanswered)
  }
}
