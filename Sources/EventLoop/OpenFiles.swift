import Glibc

/// How many files and sockets the process may have open at a time.
public enum OpenFiles {
  /// Raises the limit to `count`, or as far as the system lets it; never lowers it.
  ///
  /// The usual 1024 are kept so low for programs that use select(2), which this one does not.
  public static func allow(_ count: Int) {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    let wanted = min(rlim_t(count), limit.rlim_max)
    guard limit.rlim_cur < wanted else { return }
    limit.rlim_cur = wanted
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
