import Glibc

/// An address of a broker's host.
struct HostAddress: Sendable, Equatable {
  /// AF_INET or AF_INET6.
  let family: Int32
  let text: String

  /// The addresses of `host`, in the order of the look-up, which may block.
  @Sendable static func all(of host: String) throws(MQTTError) -> [HostAddress] {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let failure = getaddrinfo(host, nil, &hints, &list)
    guard failure == 0 else {
      throw .lookUpFailed(host: host, reason: String(cString: gai_strerror(failure)))
    }
    defer { freeaddrinfo(list) }
    var addresses: [HostAddress] = []
    var next = list
    while let info = next?.pointee {
      // With its scope, which an address of the link (fe80::) needs.
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      getnameinfo(info.ai_addr, info.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
      let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      let address = HostAddress(family: info.ai_family, text: String(decoding: bytes, as: UTF8.self))
      if !addresses.contains(address) { addresses.append(address) }
      next = info.ai_next
    }
    return addresses
  }
}

/// Which of the addresses of a host is tried: all in turn, until one answers. Pure.
struct AddressChoice {
  /// How many there are; those of the last look-up.
  var count = 1
  private var index = 0
  /// The errors of the addresses that have been tried since the last connection or report.
  private var errors: [MQTTError] = []

  /// The address to try, of as many as ``count``.
  func of<Address>(_ addresses: [Address]) -> Address { addresses[index % addresses.count] }

  /// An attempt has failed.
  /// - Returns: what to report: when all have been tried the first error, if possible of an address that was reached; or an
  ///   error that does not depend on the address; nil: the next one follows.
  mutating func failed(_ error: MQTTError) -> MQTTError? {
    guard error.mayDependOnAddress else {
      errors = []
      return error
    }
    index = (index + 1) % count
    errors.append(error)
    guard errors.count >= count else { return nil }
    defer { errors = [] }
    return errors.first { if case .unreachable = $0 { false } else { true } } ?? errors[0]
  }

  /// The address is used until it fails.
  mutating func connected() { errors = [] }
}

extension MQTTError {
  /// Whether another address of the host may do better.
  fileprivate var mayDependOnAddress: Bool {
    switch self {
    case .unreachable, .timedOut(.connect), .timedOut(.tls), .timedOut(.connack), .connectionLost: true
    default: false
    }
  }
}
