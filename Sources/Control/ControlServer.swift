import Bridge
import Devices
import EventLoop
import Glibc
import JSON
import Log
import Sockets

/// The gateway's socket for the command line: requests as over MQTT, one JSON object per line.
@LoopActor package final class ControlServer {
  /// Further clients wait until one has disconnected.
  nonisolated static let mostClients = 16

  private unowned let host: any RequestHost
  private let log = Logger(component: "control")
  private var listener: (socket: SocketListener, path: String)?
  private var sessions: [ObjectIdentifier: ControlSession] = [:]
  /// Opens the gateway for set-up in a browser, and returns who may do it how; only root and the gateway's own user may ask.
  package var openSetup: () -> Result<JSONValue, RequestError> = {
    .failure(RequestError("the gateway cannot be set up in a browser"))
  }

  /// - Parameter host: must outlive the server.
  package init(_ host: any RequestHost) { self.host = host }

  /// Listens at `path`, in a folder that exists; replaces the socket of a process that is gone.
  ///
  /// The user and the group of the gateway may connect, if the folder's mode lets them reach the socket.
  package func listen(at path: String) throws(RequestError) {
    let isUsed: Bool
    do throws(SocketFailure) {
      Glibc.close(try UnixSocket.connect(to: path))
      isUsed = true
    } catch {
      isUsed = error.isBusy
    }
    if isUsed { throw RequestError("\(path) is in use by another gateway with this id") }
    let descriptor: Int32
    do throws(SocketFailure) {
      descriptor = try UnixSocket.listen(at: path, mode: 0o660)
    } catch {
      throw RequestError(error.description)
    }
    let socket = SocketListener([descriptor], mostConnections: Self.mostClients) { [weak self] in
      self?.serve($0)
    }
    listener = (socket, path)
  }

  /// Closes and removes the socket, and disconnects every client.
  package func stop() {
    if let path = listener?.path { unlink(path) }
    listener = nil
    for session in sessions.values { session.close() }
    sessions = [:]
  }

  /// Serves the client at the other end of a connected socket, which is owned from now on.
  package func serve(_ descriptor: Int32) {
    let mayOpen = UnixSocket.peer(of: descriptor).map { [0, geteuid()].contains($0.user) } ?? false
    let openSetup: () -> Result<JSONValue, RequestError> = { [weak self] in
      mayOpen
        ? self?.openSetup() ?? .failure(RequestError("the gateway is stopping"))
        : .failure(RequestError("only root may ask for the code: sudo microbit-gateway setup"))
    }
    let session = ControlSession(LineSocket(descriptor), host, openSetup) { [weak self] ended in
      self?.sessions[ObjectIdentifier(ended)] = nil
      self?.listener?.socket.connectionEnded()
    }
    sessions[ObjectIdentifier(session)] = session
    log.debug("client connected", ["clients": sessions.count])
  }
}
