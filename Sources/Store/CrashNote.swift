import EventLoop
import Glibc

/// What a run notes in a file for the next one, to survive its own crash: the topic of the retained message that it handles.
///
/// The file has the id of the machine's boot, how many runs in a row have died of a message, and the topic; a zero ends it.
/// What a run of another boot noted, or what is damaged, is not believed: a power cut is no crash.
@LoopActor package final class CrashNote {
  /// The last runs of this boot that died while they handled a retained message: 3 at most.
  package let deaths: Int
  /// The topic that the last of them was handling; nil: none.
  package let topic: String?

  /// After so many the next run leaves out what is retained, and those that follow are counted from zero.
  package nonisolated static let mostDeaths = 3
  private nonisolated static let size = 4096

  /// The file begins with this.
  private let head: String
  /// Negative: nothing is noted.
  private let descriptor: Int32

  /// - Parameters:
  ///   - path: nil, or where no file can be: nothing is noted.
  ///   - boot: nil if that is not known: nothing is noted.
  package init(path: String?, boot: String? = CrashNote.boot) {
    let descriptor = boot == nil ? -1 : path.map(Self.open) ?? -1
    let last = Self.read(descriptor).split(separator: " ", maxSplits: 2)
    if last.count == 3, let boot, last[0] == boot, let before = Int(last[1]), 0..<Self.mostDeaths ~= before {
      deaths = before + 1
      topic = String(last[2])
    } else {
      deaths = 0
      topic = nil
    }
    self.descriptor = descriptor
    head = "\(boot ?? "") \(deaths % Self.mostDeaths) "
    setHandling(nil)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// The id of the machine's boot.
  package nonisolated static var boot: String? {
    Folder.content(ofFile: "/proc/sys/kernel/random/boot_id")
      .map { String(decoding: $0.prefix { $0 > 0x20 }, as: UTF8.self) }
  }

  private nonisolated static func open(_ path: String) -> Int32 {
    Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
  }

  private nonisolated static func read(_ descriptor: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: size)
    guard pread(descriptor, &bytes, size, 0) > 0 else { return "" }
    return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }

  /// Notes the topic of the retained message that is being handled; nil: none is.
  package func setHandling(_ topic: String?) {
    guard descriptor >= 0 else { return }
    let bytes = Array((head + (topic ?? "")).utf8.prefix(Self.size - 1)) + [0]
    pwrite(descriptor, bytes, bytes.count, 0)
  }
}
