import CDBus
import Testing

@testable import DBus

/// Values of types that ``DBusValue`` does not have: `x`, `t`, `d` and `g`.
@Suite struct OtherTypesTests {
  private let message: OpaquePointer

  init() throws {
    message = try #require(dbus_message_new_signal("/", "org.example.Clock", "Tick"))
  }

  private var arguments: [DBusValue] {
    defer { dbus_message_unref(message) }
    return IncomingMessage(raw: message).arguments
  }

  /// Appends a value of the type.
  private func append(_ type: Character, to iterator: inout DBusMessageIter) {
    let code = Int32(type.asciiValue!)
    if "sg".contains(type) {
      "s".withCString { text in
        var text: UnsafePointer<CChar>? = text
        _ = dbus_message_iter_append_basic(&iterator, code, &text)
      }
    } else {
      var number = UInt64.max
      dbus_message_iter_append_basic(&iterator, code, &number)
    }
  }

  /// Appends a container of a type, and what it has.
  private func append(
    _ type: Character, of content: String?, to iterator: inout DBusMessageIter,
    _ fill: (inout DBusMessageIter) -> Void
  ) {
    var inner = DBusMessageIter()
    dbus_message_iter_open_container(&iterator, Int32(type.asciiValue!), content, &inner)
    fill(&inner)
    dbus_message_iter_close_container(&iterator, &inner)
  }

  @Test func theyAreSkippedAsArguments() {
    var iterator = DBusMessageIter()
    dbus_message_iter_init_append(message, &iterator)
    for type in "xtdgs" { append(type, to: &iterator) }
    #expect(arguments == [.string("s")])
  }

  @Test func entriesWithThemAreDropped() {
    var iterator = DBusMessageIter()
    dbus_message_iter_init_append(message, &iterator)
    append("a", of: "{sv}", to: &iterator) { entries in
      for type in "xtdgs" {
        append("e", of: nil, to: &entries) { entry in
          append("s", to: &entry)
          append("v", of: String(type), to: &entry) { append(type, to: &$0) }
        }
      }
    }
    append("a", of: "{ts}", to: &iterator) { entries in
      append("e", of: nil, to: &entries) { entry in
        append("t", to: &entry)
        append("s", to: &entry)
      }
    }
    #expect(arguments == [.properties(["s": .string("s")]), .dictionary(key: "t", value: "s", [])])
  }

  @Test func otherContainersAreWithoutThem() {
    var iterator = DBusMessageIter()
    dbus_message_iter_init_append(message, &iterator)
    append("a", of: "d", to: &iterator) { append("d", to: &$0) }
    append("v", of: "g", to: &iterator) { append("g", to: &$0) }
    append("r", of: nil, to: &iterator) { members in
      for type in "xs" { append(type, to: &members) }
    }
    #expect(arguments == [.array(of: "d", []), .structure([.string("s")])])
  }
}
