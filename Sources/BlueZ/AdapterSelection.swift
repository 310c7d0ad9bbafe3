import EventLoop

/// Which of bluetoothd's adapters a central uses. The kernel gives an adapter that is reset, or plugged in again at once,
/// another name while a program still holds the old one.
package struct AdapterSelection: Sendable, Equatable {
  /// The configured name: `hci0`.
  package let name: String
  /// The names of the adapters that are not to be used, as those of the gateway's other centrals.
  let others: Set<String>
  /// Whether nobody has chosen the name.
  let isDefault: Bool
  /// The address of the adapter that was used last; nil: none was.
  package internal(set) var address: String?

  package init(_ name: String, others: Set<String> = [], isDefault: Bool = false, address: String? = nil) {
    (self.name, self.others, self.isDefault, self.address) = (name, others, isDefault, address)
  }

  /// The name of the adapter to use: the configured one, or while there is none of that name, the one that was used last;
  /// before any was used, the only one if nobody has chosen the name.
  ///
  /// - Parameters:
  ///   - addresses: of bluetoothd's adapters, by their names.
  ///   - current: the adapter in use, which is kept while it is there.
  package func choose(from addresses: [String: String], current: String? = nil) -> String {
    if let current, addresses[current] != nil { return current }
    if addresses[name] != nil { return name }
    let fitting = addresses.filter { other, its in
      !others.contains(other) && (address.map { $0 == its } ?? isDefault)
    }
    return fitting.count == 1 ? fitting.keys.first ?? name : name
  }
}

extension Central {
  /// Adapters that bluetoothd has, and that no central of the gateway uses.
  public var otherAdapters: [String] {
    tree.addresses.keys.filter { $0 != currentName && $0 != adapterName && !selection.others.contains($0) }
      .sorted()
  }

  private var chosen: String { selection.choose(from: tree.addresses, current: currentName) }

  /// Begins to use another adapter if there is one to use.
  func selectAdapter() {
    guard !isSelecting, status.isListed, chosen != currentName, let bluetoothd else { return }
    isSelecting = true
    loop.task {
      await self.changeAdapter(on: bluetoothd)
      self.isSelecting = false
      // The adapters may have been listed anew meanwhile.
      self.selectAdapter()
    }
  }

  /// Waits while another gateway uses that adapter. A new connection to the bus then watches it.
  private func changeAdapter(on bluetoothd: BluetoothdConnection) async {
    while self.bluetoothd === bluetoothd, status.isListed {
      let name = chosen
      guard name != currentName else { return }
      let lock = isExclusive ? (try? await bluetoothd.lock(name)) : .acquired
      if lock == .acquired || lock == .denied, self.bluetoothd === bluetoothd, chosen == name {
        if tree.addresses[name] != nil {
          log.notice("the adapter has another name now", ["adapter": adapterName, "name": name])
        }
        return use(adapter: name)
      }
      do { try await loop.sleep(for: limits.lockRetry) } catch { return }
    }
  }
}
