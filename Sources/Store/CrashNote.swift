import EventLoop
import Glibc

/// What a run notes in a file for the next one, to survive its own crash: that it takes what others have retained at the
/// broker, and the topic of the message that it handles. The file is mapped, so that a note costs no system call.
///
/// It begins with the machine's boot: what a run of another one noted, or what is damaged, is not believed. A power cut is
/// no crash.
@LoopActor package final class CrashNote {
  /// The last runs of this boot that died while they took what others have retained.
  package let deaths: Int
  /// The topic that the last of them was handling; nil: none, or not known.
  package let topic: String?

  private nonisolated static let size = 4096
  /// The end of the boot's id.
  private nonisolated static let begin = 36
  /// The boot's id, a byte with the count of deaths, one that is 1 while retained messages are taken, the topic, a zero.
  // unsafe: the deinitializer is not isolated.
  private nonisolated(unsafe) let file: UnsafeMutablePointer<UInt8>?
  /// What follows the boot's id.
  private var page: UnsafeMutablePointer<UInt8>? { file.map { $0 + Self.begin } }

  /// - Parameters:
  ///   - path: nil, or where no file can be: nothing is noted.
  ///   - boot: nil if that is not known: nothing is noted.
  package init(path: String?, boot: String? = CrashNote.boot) {
    let boot = boot.map { Array($0.utf8.prefix(Self.begin)) } ?? []
    file = boot.count == Self.begin ? path.flatMap(Self.map) : nil
    var lastTopic: String?
    if let file {
      let page = file + Self.begin
      if !UnsafeBufferPointer(start: file, count: Self.begin).elementsEqual(boot) {
        file.update(repeating: 0, count: Self.size)
        for (index, byte) in boot.enumerated() { file[index] = byte }
      }
      if page[1] != 0 {
        if page[0] < .max { page[0] += 1 }
        let text = UnsafeBufferPointer(start: page + 2, count: Self.size - Self.begin - 2).prefix { $0 != 0 }
        if !text.isEmpty { lastTopic = String(decoding: text, as: UTF8.self) }
        (page[1], page[2]) = (0, 0)
      }
    }
    topic = lastTopic
    deaths = file.map { Int($0[Self.begin]) } ?? 0
  }

  deinit { if let file { munmap(file, Self.size) } }

  /// The id of the machine's boot.
  package nonisolated static var boot: String? {
    guard let file = fopen("/proc/sys/kernel/random/boot_id", "re") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: begin)
    return fread(&bytes, 1, begin, file) == begin ? String(decoding: bytes, as: UTF8.self) : nil
  }

  private nonisolated static func map(_ path: String) -> UnsafeMutablePointer<UInt8>? {
    if let start = mapOnce(path) { return start }
    // Its place on a worn-out card may be one that cannot be read any more. Anything but a file is somebody else's.
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, unlink(path) == 0 else { return nil }
    return mapOnce(path)
  }

  private nonisolated static func mapOnce(_ path: String) -> UnsafeMutablePointer<UInt8>? {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    // The page exists, also on a full disk, and can be read: using one that cannot would end the process.
    var bytes = [UInt8](repeating: 0, count: size)
    guard ftruncate(descriptor, off_t(size)) == 0, posix_fallocate(descriptor, 0, off_t(size)) == 0,
      pread(descriptor, &bytes, size, 0) == size,
      let start = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), start != MAP_FAILED
    else { return nil }
    mlock(start, size)
    return start.assumingMemoryBound(to: UInt8.self)
  }

  /// Whether what others have retained is being taken: a run that ends meanwhile has died of it.
  package func setTaking(_ isTaking: Bool) { page?[1] = isTaking ? 1 : 0 }

  /// The gateway has taken it, and lives.
  package func survived() {
    setTaking(false)
    page?[0] = 0
  }

  /// Notes the topic of the message that is being handled; empty: none is.
  package func setHandling(_ topic: String) {
    guard let page else { return }
    let text = topic.utf8.prefix(Self.size - Self.begin - 3)
    for (index, byte) in text.enumerated() { page[2 + index] = byte }
    page[2 + text.count] = 0
  }
}
