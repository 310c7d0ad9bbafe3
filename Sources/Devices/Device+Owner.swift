import Log

/// Which gateway owns the device, and what gateways hand over.
extension Device {
  func setOwner(_ new: Owner, _ handover: Handover?, isTakenOver: Bool, hasNewLink: Bool) {
    let before = owner
    owner = new
    session.ownerChanged(isNewHere: new == .this && before != .this, told: handover?.told)
    if new.isOther, let handover { values.replace(with: handover.values) }
    // Each row is published once, by the gateway that has read it: reading goes on from the other gateway's position.
    if let log = handover?.log, log.isAhead(of: record.log) {
      context.store.change(address) { $0.log = log }
    }
    let (revision, isPending) = (record.revision, record.isPending)
    if isTakenOver {
      // Commands for a device that this gateway owned came to it alone; an owner that was offline received only
      // retained ones.
      let mayHaveCommands = before != .this && before != new
      for channel in channels {
        let desired = handover?.desired[channel.property.name] ?? nil
        channel.writer?.handOver(desired, mayHaveCommands: mayHaveCommands)
      }
      revise(revision)
    }
    if let handover {
      if owner == .unknown {
        // The owner has removed the device: it is no longer deleted in Home Assistant, nor disabled. What is older elsewhere
        // stays older.
        revise(revision, isDeleted: false)
        context.store.change(address) { $0.isDisabledElsewhere = false }
        report(.description)
      } else if isTakenOver && isPending || handover.isNewer(than: revision, isTakenOver: isTakenOver) {
        copy(handover)
        report(.description)
      }
    }
    if isTakenOver { session.linkSession?.handedOver(hasNewLink: hasNewLink) }
  }

  private func copy(_ handover: Handover) {
    for channel in channels {
      if let desired = handover.desired[channel.property.name] { channel.writer?.copy(desired) }
    }
    revise(handover.revision, isDeleted: handover.isDeleted)
    context.store.change(address) { $0.isDisabledElsewhere = handover.isDisabled }
  }

  /// Makes a new revision also if nothing changes: what gateways still know of a device that is added again is older.
  func setDeleted(_ isDeleted: Bool) {
    revise(isDeleted: isDeleted)
    report(.description)
  }

  /// Something that gateways hand over has changed.
  /// - Parameter revision: nil: it was changed here.
  func revise(_ revision: Int? = nil, isDeleted: Bool? = nil) {
    let isPending = revision == nil && owner != .this
    let revision = revision ?? max(Int(Timestamp.now.milliseconds), record.revision &+ 1)
    context.store.change(address) { record in
      (record.revision, record.isPending) = (revision, isPending)
      record.isDeleted = isDeleted ?? record.isDeleted
    }
  }
}
