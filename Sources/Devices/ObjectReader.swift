import Cryptography
import EventLoop
import GATT

/// Reads what one device advertises in BTHome, and decrypts it.
///
/// The counter of encrypted frames must not go back: somebody may have recorded a press of a button, and send it again. But a
/// device that was reset, or has a new battery, counts anew: most from 0, so that below ``lowest`` every counter is taken, as by
/// others that read BTHome; some from any number; and some programs count to 65535. One that sends by itself is taken again once
/// it has sent nothing else for longer than it is ever silent. Of a button the silence says nothing.
struct ObjectReader {
  private static let lowest = 100
  /// How many frames with growing counters are refused before a device that counts anew is taken again.
  private static let mostRefused = 3
  /// How long a device is silent at least before it is taken again.
  private static let leastSilence = Duration.seconds(300)

  /// The last counter that was taken.
  private(set) var counter: Int?
  /// When a frame was taken last, at first when the reader was made.
  private var taken: Moment
  /// Since then: the last counter that was refused, and how many in a row grew up to it.
  private var refused: (counter: Int, count: Int)?
  private var last: (data: [UInt8], key: [UInt8]?, plain: Result<[UInt8], BTHome.Obstacle>)?

  /// - Parameter counter: that of an earlier run.
  init(counter: Int?, at now: Moment = .now) { (self.counter, taken) = (counter, now) }

  /// Whether `data` and `key` are those of the last read.
  func hasRead(_ data: [UInt8], key: [UInt8]?) -> Bool { last?.data == data && last?.key == key }

  /// - Parameter silence: the time after which the device counts as silent.
  /// - Returns: the service data as if it were not encrypted.
  mutating func read(
    _ data: [UInt8], key: [UInt8]?, from address: BluetoothAddress, silence: Duration = .zero,
    at now: Moment = .now
  ) throws(BTHome.Obstacle) -> [UInt8] {
    if let last, hasRead(data, key: key) { return try last.plain.get() }
    let plain = Result { () throws(BTHome.Obstacle) in try decrypt(data, key, address, silence, now) }
    last = (data, key, plain)
    return try plain.get()
  }

  private mutating func decrypt(
    _ data: [UInt8], _ key: [UInt8]?, _ address: BluetoothAddress, _ silence: Duration, _ now: Moment
  ) throws(BTHome.Obstacle) -> [UInt8] {
    guard try BTHome.Frame(data).isEncrypted else {
      guard key == nil else { throw .notEncrypted }
      return data
    }
    guard let key else { throw .encrypted }
    guard let frame = BTHome.EncryptedFrame(data),
      let objects = AESCCM.open(frame.ciphertext, tag: frame.tag, nonce: frame.nonce(from: address), key: key)
    else { throw .wrongKey }
    let new = Int(frame.counter)
    if let counter, new < counter, new >= Self.lowest {
      guard countsAnew(from: new), !frame.isTriggerOnly, taken + max(silence, Self.leastSilence) <= now
      else { throw .repeated }
    }
    (counter, taken, refused) = (new, now, nil)
    return frame.plain(objects)
  }

  /// Notes a counter that has gone back.
  /// - Returns: whether enough others came before it, each greater than the one before.
  private mutating func countsAnew(from new: Int) -> Bool {
    let before = refused ?? (counter: new, count: 0)
    // Some programs send two frames with the same counter.
    let count = new < before.counter ? 1 : new == before.counter ? max(before.count, 1) : before.count + 1
    refused = (new, count)
    return count > Self.mostRefused
  }
}
