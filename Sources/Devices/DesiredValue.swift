import GATT

/// The desired value of a device's property, and its source.
struct DesiredValue: Sendable, Equatable {
  /// A value set by a command or a request. It ranks above the configured one, and survives restarts.
  struct Override: Sendable, Equatable {
    let value: Value
    let source: ValueSource
  }

  var configured: Value?
  var override: Override?
  /// Of a command without time to live that is not carried out yet: kept for the next start.
  var waiting: Value?

  /// What is applied on every link; nil leaves the device as it is.
  var effective: Value? { override?.value ?? configured }
  /// What is kept over a restart.
  var persistent: Override? {
    waiting.map { Override(value: $0, source: .command) } ?? override
  }
  /// What is published.
  var shown: Value? { waiting ?? effective }
  /// Whether ``shown`` is the configured value.
  var isConfigured: Bool { waiting == nil && override == nil && configured != nil }
}

/// What gateways hand over to each other by the `info` of a device: its owner publishes it, the others copy what is newer.
package struct Handover: Sendable, Equatable {
  /// By property; what is not named is not known there.
  package let desired: [String: PublishedDesired]
  /// See ``DeviceDescription/isDeleted``.
  package let isDeleted: Bool
  /// See ``DeviceDescription/revision``.
  package let revision: Int

  package init(desired: [String: PublishedDesired] = [:], isDeleted: Bool = false, revision: Int = 0) {
    self.desired = desired
    self.isDeleted = isDeleted
    self.revision = revision
  }

  /// Whether it replaces what is here. Of two that are as new, that of an owner that is online counts.
  func isNewer(than revision: Int, isTakenOver: Bool) -> Bool {
    self.revision > revision || isTakenOver && self.revision == revision
  }
}

/// What another gateway, which owns the device, has published of a property's desired value.
package enum PublishedDesired: Sendable, Equatable {
  /// It was set there by a command or a request.
  case override(EncodedValue)
  /// No command or request has set it there. What is configured there does not hold here.
  case noOverride

  var override: EncodedValue? {
    switch self {
    case .override(let value): value
    case .noOverride: nil
    }
  }
}
