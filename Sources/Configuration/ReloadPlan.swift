import JSON

/// What a configuration that is read again changes while the gateway runs.
package struct ReloadPlan: Sendable, Equatable {
  /// What applies from now on: the new one, with the old values of what needs a restart.
  package let configuration: Configuration
  /// The keys that have changed and take effect now: `gateway.area`, `devices` …
  package let live: [String]
  /// The keys that have changed and wait for a restart: `mqtt.host` …
  package let waiting: [String]

  /// The keys that may change while the gateway runs. Every other one is part of what connections and topics are
  /// made of.
  static let liveKeys: Set = [
    "gateway.area", "mqtt.qos", "mqtt.readings", "home_assistant.discovery", "home_assistant.prefix",
    "devices", "profiles", "profiles_directory",
  ]
}

extension Configuration {
  /// How this one, newly read, takes the place of `old`.
  package func changes(from old: Configuration) -> ReloadPlan {
    let changed = Self.differences(old, self)
    var merged = self
    merged.gateway.id = old.gateway.id
    merged.bluetooth = old.bluetooth
    merged.mqtt = old.mqtt
    merged.mqtt.qos = mqtt.qos
    merged.mqtt.readings = mqtt.readings
    return ReloadPlan(
      configuration: merged, live: changed.filter(ReloadPlan.liveKeys.contains),
      waiting: changed.filter { !ReloadPlan.liveKeys.contains($0) })
  }

  /// The paths of the keys, two levels deep at most, whose values are not the same.
  private static func differences(_ old: Configuration, _ new: Configuration) -> [String] {
    var paths = keys.flatMap { key -> [String] in
      guard case .object(let members) = key.shape else {
        return key.write(old) == key.write(new) ? [] : [key.name]
      }
      let (before, after) = (key.write(old), key.write(new))
      return members.map(\.name).filter { before?[$0] != after?[$0] }.map { "\(key.name).\($0)" }
    }
    // The file is the same, what stands in it is not.
    if old.mqtt.password != new.mqtt.password, !paths.contains("mqtt.password_file") {
      paths.append("mqtt.password_file")
    }
    return paths
  }
}
