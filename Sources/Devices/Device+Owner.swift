import EventLoop
import Log

/// Which gateway owns the device, and what gateways hand over.
extension Device {
  func setOwner(_ new: Owner, _ handover: Handover?, isTakenOver: Bool, hasNewLink: Bool) {
    let before = owner
    owner = new
    session.ownerChanged(isNewHere: new == .this && before != .this, told: handover?.told)
    if new.isOther, let handover { values.replace(with: handover.valueTable) }
    if let log = handover?.log { continueLog(at: log) }
    let (revision, isPending) = (record.revision, record.isPending)
    if isTakenOver {
      // Commands for a device that this gateway owned came to it alone; an owner that was offline received only
      // retained ones.
      handOverWrites(handover, mayHaveCommands: before != .this && before != new)
      revise(revision)
    }
    if handover != nil, owner == .unknown {
      removedByOwner(revision)
    } else if let handover,
      isTakenOver && isPending || handover.isNewer(than: revision, isTakenOver: isTakenOver)
    {
      copy(handover)
    }
    if isTakenOver { session.linkSession?.handedOver(hasNewLink: hasNewLink) }
  }

  /// Each row is published once, by the gateway that has read it: reading goes on from the other gateway's position.
  private func continueLog(at position: LogPosition) {
    if position.isAhead(of: record.log) { context.store.change(address) { $0.log = position } }
  }

  /// - Parameter mayHaveCommands: whether the new owner may have received the commands that wait.
  private func handOverWrites(_ handover: Handover?, mayHaveCommands: Bool) {
    let lastChange = handover?.lastChange ?? .now
    for channel in channels {
      channel.writer?.handOver(
        handover?.desired[channel.property.name], lastChange: lastChange, mayHaveCommands: mayHaveCommands)
    }
  }

  /// The owner has removed the device: it is no longer deleted in Home Assistant, nor disabled. What is older elsewhere stays
  /// older.
  private func removedByOwner(_ revision: Int) {
    revise(revision, isDeleted: false)
    context.store.change(address) { $0.requested.isDisabledElsewhere = false }
    report(.description)
  }

  /// Takes what the other gateway, or an earlier run of this one, has published instead of what this one has.
  private func copy(_ handover: Handover) {
    for channel in channels {
      if let desired = handover.desired[channel.property.name] { channel.writer?.copy(desired) }
    }
    revise(handover.revision, isDeleted: handover.isDeleted)
    context.store.change(address) { $0.requested.isDisabledElsewhere = handover.isDisabled }
    report(.description)
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
      record.requested.isDeleted = isDeleted ?? record.requested.isDeleted
    }
  }
}
