import Glibc

/// The limit of open files and sockets of the process.
public enum OpenFiles {
  /// Raises the limit to `count`, or as far as the hard limit allows; never lowers it.
  ///
  /// The usual 1024 is kept for programs that use select(2), which this one does not.
  public static func allow(_ count: Int) {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    let desired = min(rlim_t(count), limit.rlim_max)
    guard limit.rlim_cur < desired else { return }
    limit.rlim_cur = desired
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
