/// The encoding of a value in advertisements that is known by its name. Only decoded: nobody can write it.
public enum AdvertisedFormat: Sendable, Hashable {
  /// A frame Eddystone-UID without its first byte: the power at 0 m, a namespace of 10 bytes, an instance of 6, and two
  /// reserved bytes, which MakeCode's programs leave out.
  case eddystoneUID
  /// A frame Eddystone-URL without its first byte: the power at 0 m, a scheme, and an address with codes for `.com` and
  /// others.
  case eddystoneURL
  /// One object of BTHome, by its name.
  case bthome(String)

  /// What an object of BTHome has; nil: it is none.
  private var content: BTHome.Content? {
    if case .bthome(let name) = self { BTHome.quantity(name)?.content } else { nil }
  }

  /// The names of the visible fields of its record; nil: it is none.
  var fields: [String]? {
    self == .eddystoneUID ? ["power", "namespace", "instance"] : content?.fields
  }

  /// The words of an event; empty for everything else.
  var words: [Int: String] { content?.words ?? [:] }

  /// What its values are.
  var values: Codec.Content {
    if fields != nil { return .several }
    if case .number? = content { return .number(step: nil) }
    if !words.isEmpty { return .words(words.inOrder) }
    return content == .bool ? .bool : .text
  }

  /// What the values of a field are; nil: there is none of this name.
  func values(of field: String) -> Codec.Content? {
    guard fields?.contains(field) == true else { return nil }
    return self == .eddystoneUID && field != "namespace" ? .number(step: 1) : .text
  }

  /// - Parameter index: of several objects of BTHome with the same name.
  func decode(_ bytes: [UInt8], at index: Int) throws(CodecError) -> Value {
    switch self {
    case .eddystoneUID: return try Self.uid(bytes)
    case .eddystoneURL: return .text(try Self.url(bytes))
    case .bthome(let name):
      let frame: BTHome.Frame
      do throws(BTHome.Obstacle) {
        frame = try BTHome.Frame(bytes)
      } catch {
        throw .unreadable(error)
      }
      guard !frame.isEncrypted else { throw .unreadable(.encrypted) }
      return try frame.value(name, at: index)
    }
  }

  /// MakeCode's `advertiseUid` fills the last four bytes of the instance with a signed number, and those before with 0.
  private static func uid(_ bytes: [UInt8]) throws(CodecError) -> Value {
    guard bytes.count == 17 || bytes.count == 19 else { throw .length(expected: 17, bytes: bytes) }
    let instance = bytes[11..<17].reduce(0) { $0 << 8 | Int($1) }
    return .record([
      .integer(Int(Int8(bitPattern: bytes[0]))), .bytes(Array(bytes[1..<11])),
      .integer(instance >> 32 == 0 ? Int(Int32(truncatingIfNeeded: instance)) : instance),
    ])
  }

  private static let schemes = ["http://www.", "https://www.", "http://", "https://"]
  private static let domains = [".com", ".org", ".edu", ".net", ".info", ".biz", ".gov"]

  private static func url(_ bytes: [UInt8]) throws(CodecError) -> String {
    guard bytes.count >= 2 else { throw .tooShort(needed: 2, bytes: bytes) }
    guard bytes.count <= 19 else { throw .tooLong(count: bytes.count, most: 19) }
    guard bytes[1] < schemes.count else { throw .notEddystoneURL(bytes) }
    var text = schemes[Int(bytes[1])]
    for byte in bytes[2...] {
      switch Int(byte) {
      case 0..<domains.count: text += domains[Int(byte)] + "/"
      case domains.count..<2 * domains.count: text += domains[Int(byte) - domains.count]
      case 0x21...0x7E: text.unicodeScalars.append(Unicode.Scalar(byte))
      default: throw .notEddystoneURL(bytes)
      }
    }
    return text
  }
}

extension AdvertisedFormat: RawRepresentable, CaseIterable {
  /// `eddystone_uid`, `eddystone_url`, `bthome_temperature` …
  public var rawValue: String {
    switch self {
    case .eddystoneUID: "eddystone_uid"
    case .eddystoneURL: "eddystone_url"
    case .bthome(let name): "bthome_" + name
    }
  }

  /// The format of this name; nil: there is none.
  public init?(rawValue: String) {
    guard let format = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = format
  }

  /// All formats, in the order in which a message names them.
  public static let allCases: [AdvertisedFormat] =
    [.eddystoneUID, .eddystoneURL] + BTHome.quantities.map(\.name).sorted().map(AdvertisedFormat.bthome)
}
