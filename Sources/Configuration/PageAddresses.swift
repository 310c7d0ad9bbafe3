import Glibc

extension Configuration.HTTP {
  /// The addresses by which browsers find the page: by the name and each IP address of this computer, or, if the page
  /// listens at certain addresses alone, by those.
  package func urls(_ host: String = GatewayID.nameOfThisHost, _ known: [String] = ipAddresses)
    -> [String]
  {
    let reachable = known.filter { addresses == ["::"] || !$0.contains(":") }
    guard addresses.contains(where: Self.isEverywhere), !reachable.isEmpty else {
      return addresses.map(url(at:))
    }
    return (Self.names(host).suffix(1) + reachable.map(Self.bracketed)).map(url(of:))
  }

  func url(of host: String) -> String { "http://\(host):\(port)/" }

  /// What a browser may call this computer: its names and addresses, in lower case. Loopback addresses are not among them.
  package static var hostsOfThisComputer: Set<String> {
    Set((names(GatewayID.nameOfThisHost) + ipAddresses.map(bracketed)).map { $0.lowercased() })
  }

  /// The name of the host, and the one by which other computers find it.
  static func names(_ host: String) -> [String] {
    host.isEmpty || host == "localhost"
      ? [] : host.utf8.contains(UInt8(ascii: ".")) ? [host] : [host, "\(host).local"]
  }

  static func bracketed(_ address: String) -> String {
    address.contains(":") ? "[\(address)]" : address
  }

  /// The addresses of this computer in networks, IPv4 first. Those that hold for one link alone (`fe80::`) are left out, as no
  /// browser can use them.
  static var ipAddresses: [String] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var (v4, v6): ([String], [String]) = ([], [])
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let address = entry.ifa_addr, entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0 else { continue }
      let raw = UnsafeRawPointer(address)
      switch Int32(address.pointee.sa_family) {
      case AF_INET:
        var bytes = raw.load(as: sockaddr_in.self).sin_addr
        if let text = text(AF_INET, &bytes), !v4.contains(text) { v4.append(text) }
      case AF_INET6:
        var bytes = raw.load(as: sockaddr_in6.self).sin6_addr
        if let text = text(AF_INET6, &bytes), !text.hasPrefix("fe8"), !v6.contains(text) { v6.append(text) }
      default: break
      }
    }
    return v4 + v6
  }

  private static func text(_ family: Int32, _ address: UnsafeRawPointer) -> String? {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(family, address, &text, socklen_t(text.count)) != nil else { return nil }
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
