import JSON

/// The changes of a reload.
package struct ReloadPlan: Sendable, Equatable {
  /// The new configuration, with the old values of keys that need a restart.
  package let configuration: Configuration
  /// The keys that have changed and wait for a restart: `mqtt.host` …
  package let waiting: [String]
}

extension Configuration {
  /// How this configuration replaces `old`.
  package func changes(from old: Configuration) -> ReloadPlan {
    var merged = self
    merged.gateway.id = old.gateway.id
    merged.bluetooth = old.bluetooth
    merged.spool = old.spool
    merged.mqtt = old.mqtt
    merged.mqtt.qos = mqtt.qos
    merged.mqtt.readings = mqtt.readings
    return ReloadPlan(configuration: merged, waiting: Self.differences(merged, self))
  }

  /// The paths of the keys, two levels deep at most, whose values are not the same.
  private static func differences(_ old: Configuration, _ new: Configuration) -> [String] {
    var new = new
    new.bluetooth = new.bluetooth.named(as: old.bluetooth)
    return keys.flatMap { key -> [String] in
      guard case .object(let members) = key.shape else {
        return key.write(old) == key.write(new) ? [] : [key.name]
      }
      let (before, after) = (key.write(old), key.write(new))
      return members.map(\.name).filter { before?[$0] != after?[$0] }.map { "\(key.name).\($0)" }
    }
  }
}
