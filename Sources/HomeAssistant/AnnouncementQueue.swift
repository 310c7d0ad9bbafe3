import Bridge
import Configuration
import Devices
import GATT
import MQTT

/// Something to be told to Home Assistant.
enum Announcement: Sendable, Hashable {
  case gateway(Stage)
  case device(BluetoothAddress, Stage)
  /// About what was taken back: by its discovery topic.
  case removal(String, Stage)

  enum Stage: Sendable, CaseIterable {
    /// What is so now.
    case plain
    /// At the birth of Home Assistant: what is so now, and what is to be forgotten → forget, some seconds later.
    case reannounce
    /// That which was re-announced is to be forgotten now.
    case remove
  }
}

/// What Home Assistant is still to be told, in order, each once.
struct AnnouncementQueue {
  private var waiting: [Announcement] = []
  /// So many of the first are done.
  private var done = 0
  private var members: Set<Announcement> = []
  /// Not to be told yet.
  private var held: Set<Announcement> = []

  var isEmpty: Bool { members.isEmpty }

  mutating func append(_ announcement: Announcement) {
    guard !held.contains(announcement) else { return }
    if members.insert(announcement).inserted { waiting.append(announcement) }
  }

  /// Before all others; unless it waits already.
  mutating func prepend(_ announcement: Announcement) {
    guard !held.contains(announcement) else { return }
    if members.insert(announcement).inserted { waiting.insert(announcement, at: done) }
  }

  /// Until it is released, it is not told, however often it is asked for.
  /// - Returns: whether it was not held already.
  mutating func hold(_ announcement: Announcement) -> Bool { held.insert(announcement).inserted }

  /// - Returns: whether it was held, and is now to be told.
  mutating func release(_ announcement: Announcement) -> Bool { held.remove(announcement) != nil }

  /// Takes out the first `count`.
  mutating func next(_ count: Int) -> ArraySlice<Announcement> {
    let next = waiting[done...].prefix(count)
    done += next.count
    for announcement in next { members.remove(announcement) }
    if members.isEmpty {
      waiting = []
      done = 0
    }
    return next
  }
}
