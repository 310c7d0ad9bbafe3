import Configuration
import JSON

/// Why a command or a request cannot be carried out, for its sender.
package struct RequestError: Error, Sendable, Equatable {
  /// The kind of error, for programs.
  package enum Code: String, Sendable {
    /// The request is wrong: a key, a value, or a property that the device does not have.
    case invalid
    /// There is no such device or bond.
    case notFound = "not_found"
    /// The request cannot be met now: the device is not in range or disabled, the adapter is off, a limit is reached.
    case unavailable
    /// The device has refused, or an operation on it has failed.
    case failed
  }

  package let code: Code
  package let reason: String
  /// What was done before it failed.
  package let data: JSONValue?

  package init(_ code: Code, _ reason: String, data: JSONValue? = nil) {
    self.code = code
    self.reason = reason
    self.data = data
  }

  /// ``Code/unavailable``.
  package init(_ reason: String) { self.init(.unavailable, reason) }

  /// The error with its place in the request.
  func at(_ path: ConfigurationPath) -> RequestError { RequestError(code, path.error(reason).description) }
}
