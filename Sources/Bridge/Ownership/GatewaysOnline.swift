import Configuration

/// The other gateways at this broker that are online.
struct GatewaysOnline {
  /// Whoever may publish `bridge/{id}/state` can invent ids.
  static let capacity = 1024

  private var ids: Set<GatewayID> = []

  var isEmpty: Bool { ids.isEmpty }

  func contains(_ gateway: GatewayID) -> Bool { ids.contains(gateway) }

  /// Beyond ``capacity``, further gateways count as offline.
  mutating func set(_ gateway: GatewayID, isOnline: Bool) {
    if !isOnline {
      ids.remove(gateway)
    } else if ids.count < Self.capacity {
      ids.insert(gateway)
    }
  }
}
