import Configuration

/// Which gateway owns a device: writes its topics and carries out its commands.
package enum Owner: Sendable, Equatable {
  /// None, as far as is known.
  case unknown
  case this
  case other(GatewayID)

  package var isOther: Bool { if case .other = self { true } else { false } }
}
