import Cryptography
import GATT

/// Reads what one device advertises in BTHome, and decrypts it.
///
/// The counter of encrypted frames must not go back: somebody may have recorded a press of a button, and send it again. A
/// device that was reset, or has a new battery, counts from 0: below ``lowest`` every counter is taken, as by others that
/// read BTHome.
struct ObjectReader {
  private static let lowest = 100

  /// The last counter that was read.
  private(set) var counter: Int?
  private var last: (data: [UInt8], key: [UInt8]?, plain: Result<[UInt8], BTHome.Obstacle>)?

  /// - Parameter counter: that of an earlier run.
  init(counter: Int?) { self.counter = counter }

  /// Whether `data` and `key` are those of the last read.
  func hasRead(_ data: [UInt8], key: [UInt8]?) -> Bool { last?.data == data && last?.key == key }

  /// - Returns: the service data as if it were not encrypted.
  mutating func read(
    _ data: [UInt8], key: [UInt8]?, from address: BluetoothAddress
  ) throws(BTHome.Obstacle) -> [UInt8] {
    if let last, hasRead(data, key: key) { return try last.plain.get() }
    let plain = Result { () throws(BTHome.Obstacle) in try decrypt(data, key, address) }
    last = (data, key, plain)
    return try plain.get()
  }

  private mutating func decrypt(
    _ data: [UInt8], _ key: [UInt8]?, _ address: BluetoothAddress
  ) throws(BTHome.Obstacle) -> [UInt8] {
    guard try BTHome.Frame(data).isEncrypted else {
      guard key == nil else { throw .notEncrypted }
      return data
    }
    guard let key else { throw .encrypted }
    guard let frame = BTHome.EncryptedFrame(data),
      let objects = AESCCM.open(frame.ciphertext, tag: frame.tag, nonce: frame.nonce(from: address), key: key)
    else { throw .wrongKey }
    let now = Int(frame.counter)
    if let counter, now < counter, now >= Self.lowest { throw .repeated }
    counter = now
    return frame.plain(objects)
  }
}
