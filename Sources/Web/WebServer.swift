import Bridge
import Configuration
import EventLoop
import Findings
import Glibc
import Log
import Sockets

/// The page and its API over HTTP: docs/http.md. While it is off, nothing of it exists.
@LoopActor package final class WebServer {
  private unowned let host: any PageHost
  private let log = Logger(component: "web")
  private var configuration: Configuration.HTTP?
  private var opening: Task<Void, Never>?
  private(set) var site: WebSite?
  /// Called when the server listens or not: its address, or why it cannot.
  package var onChange: (_ url: String?, _ problem: Finding?) -> Void = { _, _ in }

  /// - Parameter host: must outlive the server.
  package init(_ host: any PageHost) { self.host = host }

  /// Starts, stops or moves it; the password file is read again.
  package func configure(_ configuration: Configuration) {
    let new = configuration.http
    let isMoved = new != self.configuration
    self.configuration = new
    guard new.isEnabled || site != nil || opening != nil else { return }
    if isMoved { stop() }
    guard new.isEnabled else { return }
    opening?.cancel()
    opening = loop.task { [self] in await open(new) }
  }

  package func stop() {
    guard site != nil || opening != nil else { return }
    opening?.cancel()
    opening = nil
    if site != nil { log.notice("the page is not served any more") }
    site?.stop()
    site = nil
    onChange(nil, nil)
  }

  /// The state of the gateway may have changed.
  package func gatewayChanged() { site?.state.noteGateway() }

  /// Tries until it succeeds: the password or the address may come later.
  private func open(_ http: Configuration.HTTP) async {
    var reported: Finding?
    repeat {
      let passwords = await EventLoop.blocking { Result { () throws(FileProblem) in try Passwords(http) } }
      if Task.isCancelled { return }
      let problem = start(http, passwords)
      guard let problem else { return }
      if problem != reported { log.warning("\(problem.line)") }
      reported = problem
      onChange(nil, problem)
    } while (try? await loop.sleep(for: .seconds(5))) != nil
  }

  /// - Returns: why it does not listen.
  private func start(_ http: Configuration.HTTP, _ passwords: Result<Passwords, FileProblem>) -> Finding? {
    switch passwords {
    case .failure(let problem):
      site?.stop()
      site = nil
      return .warning(
        .gateway, "the page is not served: \(problem)",
        remedy:
          "let http.password_file and http.read_password_file each name a file that the gateway can read, with the password on its first line"
      )
    case .success(let passwords):
      if let site {
        site.setPasswords(passwords)
        return nil
      }
      var descriptors: [Int32] = []
      for address in http.addresses {
        switch TCPSocket.listen(at: address, port: http.port) {
        case .success(let descriptor): descriptors.append(descriptor)
        case .failure(let failure):
          for descriptor in descriptors { close(descriptor) }
          return .warning(
            .gateway, "the page is not served: \(address), port \(http.port): \(failure)",
            remedy:
              "choose another port from 1024 on in http.port, or another http.address: ss -ltnp shows the used ones"
          )
        }
      }
      let state = WebState(host)
      let site = WebSite(
        descriptors, state,
        AccessRules(passwords, proxy: http.proxy.flatMap(TCPSocket.bytes), port: http.port), http.language)
      self.site = site
      state.begin()
      let url = http.urls()[0]
      log.notice("the page is served", ["url": url])
      onChange(url, nil)
      return nil
    }
  }
}

extension Passwords {
  /// Reads the files. Blocks.
  init(_ http: Configuration.HTTP) throws(FileProblem) {
    func read(_ file: String?) throws(FileProblem) -> [UInt8]? {
      guard let file else { return nil }
      do throws(FileProblem) {
        return try ConfigurationFile.password(in: file)
      } catch {
        throw FileProblem("\(file): \(error)")
      }
    }
    (control, reading) = (try read(http.passwordFile), try read(http.readPasswordFile))
  }
}
