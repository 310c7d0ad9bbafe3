import CDBus

/// Appends `arguments` to a message under construction.
/// - Throws: ``DBusError/invalid(_:)`` if libdbus rejects a value.
func append(_ arguments: [DBusValue], to message: OpaquePointer) throws(DBusError) {
  var iterator = DBusMessageIter()
  dbus_message_iter_init_append(message, &iterator)
  for argument in arguments { try append(argument, to: &iterator) }
}

private func append(_ value: DBusValue, to iterator: inout DBusMessageIter) throws(DBusError) {
  switch value {
  case .byte(let value): try append(basic: value, cdbus_type_byte, to: &iterator)
  case .boolean(let value): try append(basic: dbus_bool_t(value ? 1 : 0), cdbus_type_boolean, to: &iterator)
  case .int16(let value): try append(basic: value, cdbus_type_int16, to: &iterator)
  case .uint16(let value): try append(basic: value, cdbus_type_uint16, to: &iterator)
  case .int32(let value): try append(basic: value, cdbus_type_int32, to: &iterator)
  case .uint32(let value): try append(basic: value, cdbus_type_uint32, to: &iterator)
  case .fileDescriptor(let value): try append(basic: value.raw, cdbus_type_unix_fd, to: &iterator)
  case .string(let text): try append(text: text, cdbus_type_string, to: &iterator)
  case .objectPath(let path):
    // Validated first: libdbus aborts the process on an invalid path.
    guard dbus_validate_path(path, nil) != 0 else { throw .invalid("object path \(path)") }
    try append(text: path, cdbus_type_object_path, to: &iterator)
  case .bytes(let bytes):
    try appendContainer(cdbus_type_array, "y", to: &iterator) { inner throws(DBusError) in
      let done = bytes.withUnsafeBufferPointer { buffer in
        var start = buffer.baseAddress
        return dbus_message_iter_append_fixed_array(&inner, cdbus_type_byte, &start, Int32(buffer.count))
      }
      if done == 0 { throw .invalid("out of memory") }
    }
  case .array(let element, let values):
    try appendContainer(cdbus_type_array, element, to: &iterator) { inner throws(DBusError) in
      for value in values { try append(value, to: &inner) }
    }
  case .dictionary(let key, let value, let entries):
    try appendContainer(cdbus_type_array, "{\(key)\(value)}", to: &iterator) { inner throws(DBusError) in
      for entry in entries {
        try appendContainer(cdbus_type_dict_entry, nil, to: &inner) { pair throws(DBusError) in
          try append(entry.key, to: &pair)
          try append(entry.value, to: &pair)
        }
      }
    }
  case .structure(let members):
    try appendContainer(cdbus_type_struct, nil, to: &iterator) { inner throws(DBusError) in
      for member in members { try append(member, to: &inner) }
    }
  case .variant(let value):
    try appendContainer(cdbus_type_variant, value.signature, to: &iterator) { inner throws(DBusError) in
      try append(value, to: &inner)
    }
  }
}

private func append<T: BitwiseCopyable>(basic value: T, _ type: Int32, to iterator: inout DBusMessageIter)
  throws(DBusError)
{
  var value = value
  if dbus_message_iter_append_basic(&iterator, type, &value) == 0 { throw .invalid("out of memory") }
}

private func append(text: String, _ type: Int32, to iterator: inout DBusMessageIter) throws(DBusError) {
  guard !text.utf8.contains(0) else { throw .invalid("a NUL in a string") }
  let done = text.withCString { pointer in
    var pointer: UnsafePointer<CChar>? = pointer
    return dbus_message_iter_append_basic(&iterator, type, &pointer)
  }
  if done == 0 { throw .invalid("out of memory") }
}

private func appendContainer(
  _ type: Int32, _ signature: String?, to iterator: inout DBusMessageIter,
  _ fill: (inout DBusMessageIter) throws(DBusError) -> Void
) throws(DBusError) {
  var inner = DBusMessageIter()
  guard dbus_message_iter_open_container(&iterator, type, signature, &inner) != 0 else {
    throw .invalid("out of memory")
  }
  do throws(DBusError) {
    try fill(&inner)
  } catch {
    dbus_message_iter_abandon_container(&iterator, &inner)
    throw error
  }
  if dbus_message_iter_close_container(&iterator, &inner) == 0 { throw .invalid("out of memory") }
}

/// The arguments of a received message, which libdbus has validated.
func arguments(of message: OpaquePointer) -> [DBusValue] {
  var iterator = DBusMessageIter()
  guard dbus_message_iter_init(message, &iterator) != 0 else { return [] }
  return values(&iterator)
}

private func values(_ iterator: inout DBusMessageIter) -> [DBusValue] {
  var values: [DBusValue] = []
  while dbus_message_iter_get_arg_type(&iterator) != cdbus_type_invalid {
    if let value = value(&iterator) { values.append(value) }
    dbus_message_iter_next(&iterator)
  }
  return values
}

private func value(_ iterator: inout DBusMessageIter) -> DBusValue? {
  switch dbus_message_iter_get_arg_type(&iterator) {
  case cdbus_type_byte: return .byte(basic(&iterator, 0))
  case cdbus_type_boolean: return .boolean(basic(&iterator, dbus_bool_t(0)) != 0)
  case cdbus_type_int16: return .int16(basic(&iterator, 0))
  case cdbus_type_uint16: return .uint16(basic(&iterator, 0))
  case cdbus_type_int32: return .int32(basic(&iterator, 0))
  case cdbus_type_uint32: return .uint32(basic(&iterator, 0))
  case cdbus_type_unix_fd: return .fileDescriptor(FileDescriptor(owning: basic(&iterator, Int32(-1))))
  case cdbus_type_string: return .string(text(&iterator))
  case cdbus_type_object_path: return .objectPath(text(&iterator))
  case cdbus_type_array: return array(&iterator)
  case cdbus_type_struct:
    var inner = DBusMessageIter()
    dbus_message_iter_recurse(&iterator, &inner)
    return .structure(values(&inner))
  case cdbus_type_variant:
    var inner = DBusMessageIter()
    dbus_message_iter_recurse(&iterator, &inner)
    return value(&inner).map(DBusValue.variant)
  default: return nil
  }
}

/// The array of bytes that `iterator` is at.
func byteArray(_ iterator: inout DBusMessageIter) -> [UInt8] {
  var inner = DBusMessageIter()
  dbus_message_iter_recurse(&iterator, &inner)
  var start: UnsafePointer<UInt8>?
  var count: Int32 = 0
  // libdbus does not set the pointer for an empty array.
  dbus_message_iter_get_fixed_array(&inner, &start, &count)
  return Array(UnsafeBufferPointer(start: start, count: Int(count)))
}

private func array(_ iterator: inout DBusMessageIter) -> DBusValue {
  var inner = DBusMessageIter()
  dbus_message_iter_recurse(&iterator, &inner)
  switch dbus_message_iter_get_element_type(&iterator) {
  case cdbus_type_byte:
    return .bytes(byteArray(&iterator))
  case cdbus_type_dict_entry:
    // The signatures of key and value are parts of the array's: `a{kv}`.
    let signature = signature(&iterator)
    let key = signature.dropFirst(2).prefix(1)
    let value = signature.dropFirst(3).dropLast()
    var entries: [DBusValue.Entry] = []
    while dbus_message_iter_get_arg_type(&inner) != cdbus_type_invalid {
      var pair = DBusMessageIter()
      dbus_message_iter_recurse(&inner, &pair)
      let both = values(&pair)
      if both.count == 2 { entries.append(DBusValue.Entry(both[0], both[1])) }
      dbus_message_iter_next(&inner)
    }
    return .dictionary(key: String(key), value: String(value), entries)
  default:
    return .array(of: String(signature(&iterator).dropFirst()), values(&inner))
  }
}

private func basic<T: BitwiseCopyable>(_ iterator: inout DBusMessageIter, _ zero: T) -> T {
  var value = zero
  dbus_message_iter_get_basic(&iterator, &value)
  return value
}

private func text(_ iterator: inout DBusMessageIter) -> String {
  var pointer: UnsafePointer<CChar>?
  dbus_message_iter_get_basic(&iterator, &pointer)
  return pointer.map(String.init(cString:)) ?? ""
}

private func signature(_ iterator: inout DBusMessageIter) -> String {
  guard let pointer = dbus_message_iter_get_signature(&iterator) else { return "" }
  let signature = String(cString: pointer)
  dbus_free(pointer)
  return signature
}
