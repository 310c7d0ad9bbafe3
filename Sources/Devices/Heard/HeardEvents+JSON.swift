import JSON
import Log

/// A stored event, as in `info` and in claims: `{"packet":17,"time":"…"}`, without a packet id `{"frame":"…","time":"…"}`.
extension HeardEvents.Event {
  package var json: JSONValue {
    let key: JSONValue =
      switch key {
      case .packet(let id): ["packet": .integer(Int(id))]
      case .frame(let digest): ["frame": .string(String(digest, radix: 16))]
      }
    return key.merging(["time": .string(time.description)])
  }

  /// Reads an event; nil if `json` is not one.
  package init?(_ json: JSONValue) {
    guard let time = json["time"]?.text.flatMap({ Timestamp($0) }) else { return nil }
    if let id = json["packet"]?.integer.flatMap({ UInt8(exactly: $0) }) {
      self.init(key: .packet(id), time: time)
    } else if let digest = json["frame"]?.text.flatMap({ UInt64($0, radix: 16) }) {
      self.init(key: .frame(digest), time: time)
    } else {
      return nil
    }
  }
}
