package import Hummingbird

/// What belongs to one request besides its own content.
package struct FrontEndContext: RequestContext {
  package var coreContext: CoreRequestContextStorage
  /// The id that the caller gave, or was given. Empty only before the outermost stage has seen the request.
  package var requestID = ""

  package init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
  }
}
