import CDBus
import EventLoop
import Glibc

/// Delivers a byte-array property of many objects, at thousands of changes per second.
///
/// Only this property of a `PropertiesChanged` signal is read: no strings are created, and the object is looked up by
/// the bytes of its path.
@LoopActor public final class ByteSignals {
  /// Called with the property's new value.
  public typealias Handler = @LoopActor ([UInt8]) -> Void

  private struct Listener {
    let path: CString
    let handler: Handler
  }

  private let interface: CString
  private let property: CString
  private let properties = CString(DBusName.properties)
  private let changed = CString("PropertiesChanged")
  private var sender: CString?
  /// The listeners by the hash of the path. Not a dictionary, which would hash the hash.
  private var listeners = [[Listener]](repeating: [], count: CString.hashes)

  /// - Parameter property: the name of the property: `Value`.
  public init(of property: String, on interface: String) {
    self.property = CString(property)
    self.interface = CString(interface)
  }

  /// Delivers only signals from this unique name; nil: none.
  public func setSender(_ name: String?) { sender = name.map(CString.init) }

  /// Calls `handler` with each change of the object at `path`; replaces an earlier handler.
  public func listen(to path: String, _ handler: @escaping Handler) {
    stopListening(to: path)
    let path = CString(path)
    listeners[path.hash].append(Listener(path: path, handler: handler))
  }

  /// Drops further changes of the object at `path`.
  public func stopListening(to path: String) {
    let path = CString(path)
    listeners[path.hash].removeAll { $0.path == path }
  }

  /// Delivers `message` if it is the signal `PropertiesChanged` of its interface.
  ///
  /// Other properties in it are dropped. Nothing is lost: of the properties of a GATT characteristic only `Value` is
  /// used after it was listed; whether notifications are on (`Notifying`) is known from the reply to StartNotify.
  /// - Returns: whether it was such a signal; then it needs no further handling.
  func deliver(_ message: IncomingMessage) -> Bool {
    let raw = message.raw
    var arguments = DBusMessageIter()
    guard message.type == DBUS_MESSAGE_TYPE_SIGNAL, dbus_message_has_signature(raw, "sa{sv}as") != 0,
      changed.equals(dbus_message_get_member(raw)), properties.equals(dbus_message_get_interface(raw)),
      dbus_message_iter_init(raw, &arguments) != 0, interface.equals(text(&arguments))
    else { return false }
    guard let sender, sender.equals(dbus_message_get_sender(raw)), let path = dbus_message_get_path(raw),
      let handler = listeners[CString.hash(path)].first(where: { $0.path.equals(path) })?.handler,
      let bytes = value(in: &arguments)
    else { return true }
    handler(bytes)
    return true
  }

  /// The property's value in the dictionary that follows the interface name. The message's signature has been checked,
  /// but not the type of the property.
  private func value(in arguments: inout DBusMessageIter) -> [UInt8]? {
    var entries = DBusMessageIter()
    dbus_message_iter_next(&arguments)
    dbus_message_iter_recurse(&arguments, &entries)
    while dbus_message_iter_get_arg_type(&entries) != cdbus_type_invalid {
      var entry = DBusMessageIter()
      dbus_message_iter_recurse(&entries, &entry)
      if property.equals(text(&entry)) {
        dbus_message_iter_next(&entry)
        return bytes(in: &entry)
      }
      dbus_message_iter_next(&entries)
    }
    return nil
  }

  private func bytes(in variant: inout DBusMessageIter) -> [UInt8]? {
    var value = DBusMessageIter()
    dbus_message_iter_recurse(&variant, &value)
    guard dbus_message_iter_get_arg_type(&value) == cdbus_type_array,
      dbus_message_iter_get_element_type(&value) == cdbus_type_byte
    else { return nil }
    return byteArray(&value)
  }

  private func text(_ iterator: inout DBusMessageIter) -> UnsafePointer<CChar>? {
    var pointer: UnsafePointer<CChar>?
    dbus_message_iter_get_basic(&iterator, &pointer)
    return pointer
  }
}

/// A C string, to be compared with strings in a message.
private struct CString: Equatable {
  private let bytes: [CChar]
  let hash: Int

  init(_ text: String) {
    bytes = Array(text.utf8CString)
    hash = bytes.withUnsafeBufferPointer { Self.hash($0.baseAddress!) }
  }

  func equals(_ other: UnsafePointer<CChar>?) -> Bool {
    guard let other else { return false }
    return bytes.withUnsafeBufferPointer { strcmp($0.baseAddress!, other) } == 0
  }

  /// How many values a hash can have: a power of two.
  static let hashes = 1024

  /// The last bits of FNV-1a.
  static func hash(_ text: UnsafePointer<CChar>) -> Int {
    var hash: UInt32 = 0x811c_9dc5
    var next = text
    while next.pointee != 0 {
      hash = (hash ^ UInt32(UInt8(bitPattern: next.pointee))) &* 0x0100_0193
      next += 1
    }
    return Int(hash) & (hashes - 1)
  }
}
