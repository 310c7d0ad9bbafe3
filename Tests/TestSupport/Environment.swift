import Glibc

/// A number that makes a test longer, or repeats it; nil if the variable is not set.
public func environmentNumber(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }
