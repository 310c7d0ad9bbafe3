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

/// Which of the addresses of a host is tried: all in turn, until one answers, which is the first the next time. Pure.
struct AddressChoice: Sendable {
  private var current: HostAddress?
  /// Whether no other address is left to try.
  private var isLast = true
  /// The address that has answered last.
  private var good: HostAddress?
  /// The addresses that have failed since the last connection or report, and why.
  private var failures: [(address: HostAddress?, error: MQTTError?)] = []
  /// A name server may give a few other addresses at each look-up: so many are tried before the failure is reported.
  static let most = 8

  /// Chooses one of these addresses, which the look-up may give in another order each time.
  mutating func pick(from addresses: [HostAddress]) -> HostAddress? {
    let left = addresses.filter { address in !failures.contains { $0.address == address } }
    current = good.flatMap { left.contains($0) ? $0 : nil } ?? left.first ?? addresses.first
    isLast = left.count <= 1 || failures.count + 1 >= max(Self.most, addresses.count)
    return current
  }

  /// An attempt has failed.
  /// - Returns: what to report: when all have been tried the first error, if possible of an address that was reached; or an
  ///   error that does not depend on the address; nil: the next one follows.
  mutating func failed(_ error: MQTTError) -> MQTTError? {
    guard error.mayDependOnAddress else {
      failures = []
      return error
    }
    failures.append((current, error))
    guard isLast else { return nil }
    defer { (failures, good) = ([], nil) }
    let errors = failures.compactMap(\.error)
    return errors.first { if case .unreachable = $0 { false } else { true } } ?? errors.first
  }

  mutating func connected() { (failures, good) = ([], current) }

  /// The connection to the address was of no use: the others come first.
  mutating func leave() { (failures, good) = ([(current, nil)], nil) }
}

extension MQTTError {
  /// Whether another address of the host may do better.
  fileprivate var mayDependOnAddress: Bool {
    switch self {
    case .unreachable, .timedOut(.connect), .timedOut(.tls), .timedOut(.connack), .connectionLost: true
    default: self == .tlsClosed
    }
  }
}
