import Glibc

extension Configuration.HTTP {
  /// The addresses by which browsers find the page: by the name and each IPv4 address of this computer, or, if the page
  /// listens at one address alone, by that.
  package func urls(_ host: String = GatewayID.nameOfThisHost, _ addresses: [String] = ipv4Addresses)
    -> [String]
  {
    guard ["0.0.0.0", "::"].contains(address), !addresses.isEmpty else { return [url] }
    let name = host.isEmpty ? [] : [host.utf8.contains(UInt8(ascii: ".")) ? host : "\(host).local"]
    return (name + addresses).map { "http://\($0):\(port)/" }
  }

  /// The IPv4 addresses of this computer in networks.
  package static var ipv4Addresses: [String] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var addresses: [String] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let address = entry.ifa_addr, address.pointee.sa_family == AF_INET,
        entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0
      else { continue }
      var text = [CChar](repeating: 0, count: Int(INET_ADDRSTRLEN))
      let isText = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        inet_ntop(AF_INET, &$0.pointee.sin_addr, &text, socklen_t(text.count)) != nil
      }
      if isText {
        addresses.append(
          String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
      }
    }
    return addresses
  }
}
