import BlueZ
import GATT

extension Profile {
  /// Whether something in what is advertised is for the profile, be it malformed or encrypted; with links, nothing has to be.
  func takes(_ advertised: AdvertisedData) -> Bool {
    hasLinks || properties.contains { $0.bytes(in: advertised) != nil }
      || usesBTHome && ([BTHome.service] + BTHome.oldServices).contains { advertised.serviceData[$0] != nil }
  }

  /// What the profile misses in what is advertised: what comes nearest; nil: nothing.
  package func lack(in advertised: AdvertisedData) -> String? {
    guard !takes(advertised) else { return nil }
    let nearest = properties.compactMap { $0.lack(in: advertised) }.max { $0.nearness < $1.nearness }
    return nearest?.text ?? Lack(of: .service(BTHome.service), in: advertised).text
  }
}

/// Why what is advertised has no bytes for a property.
struct Lack {
  /// How much of the source is there.
  fileprivate let nearness: Int
  let text: String

  fileprivate init(_ nearness: Int, _ text: String) { (self.nearness, self.text) = (nearness, text) }

  /// There is no such data.
  fileprivate init(of data: Property.Source.Data, in advertised: AdvertisedData) {
    self.init(0, "no \(data.shown); it sends \(advertised.shown)")
  }
}

extension Property {
  /// The bytes of its value in what is advertised; nil: there are none.
  func bytes(in advertised: AdvertisedData) -> [UInt8]? {
    source.flatMap { source in
      advertised.data(source.data).flatMap { source.value(in: $0, width: codec.width) }
    }
  }

  /// Why what is advertised has no bytes for the property, which has a source; nil: it has.
  func lack(in advertised: AdvertisedData) -> Lack? {
    guard let source else { return nil }
    guard let data = advertised.data(source.data) else { return Lack(of: source.data, in: advertised) }
    guard data.starts(with: source.prefix) else {
      let begin = Hexadecimal.text(data.prefix(source.prefix.count))
      return Lack(
        1, "\(source.data.shown) begins with \(begin), \(name) wants \(Hexadecimal.text(source.prefix))")
    }
    guard let length = source.length, length != data.count else { return nil }
    return Lack(2, "\(source.data.shown) has \(data.count) bytes, \(name) wants \(length)")
  }
}

extension Property.Source.Data {
  fileprivate var shown: String {
    switch self {
    case .service(let uuid): "service data \(uuid.short)"
    case .manufacturer(let number): "manufacturer 0x\(Hexadecimal.text(number, bytes: 2))"
    case .radio: "packet by radio"
    }
  }
}

extension AdvertisedData {
  /// Which data there is.
  fileprivate var shown: String {
    let kinds =
      manufacturerData.keys.sorted().map { Property.Source.Data.manufacturer($0).shown }
      + serviceData.keys.map { Property.Source.Data.service($0).shown }.sorted()
    return kinds.isEmpty ? "no data" : kinds.joined(separator: ", ")
  }
}
