import HTTPTypes
import Hummingbird

/// A router that takes down every route it is given.
struct RecordingRouter: RouterMethods {
  typealias Context = FrontEndContext

  let router: Router<FrontEndContext>
  let routes: RouteTable

  @discardableResult
  func on<Responder: HTTPResponder>(
    _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
  ) -> Self where Responder.Context == FrontEndContext {
    router.on(path, method: method, responder: responder)
    routes.add(path.description, method: method)
    return self
  }

  @discardableResult
  func add(middleware: any MiddlewareProtocol<Request, Response, FrontEndContext>) -> Self {
    router.add(middleware: middleware)
    return self
  }
}
