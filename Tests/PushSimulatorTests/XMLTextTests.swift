import Testing

@testable import PushSimulator

@Suite struct XMLTextTests {
  @Test(arguments: [
    "<toast/>", "<toast></toast>", "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<toast>x</toast>\n",
    "<!-- a --><toast a='1' b=\"&lt;&#10;&#x1F3BA;\"><b/>text<![CDATA[<&]]><!-- c --></toast>",
    "\u{FEFF}<toast >ü🎺</toast >",
  ])
  func acceptsWhatIsWellFormed(_ text: String) {
    #expect(XMLText.rootElement(of: Array(text.utf8)) == "toast")
  }

  @Test(arguments: [
    "", "toast", "<toast>", "<toast></tile>", "<toast/><toast/>", "<toast>&</toast>", "<toast>&nbsp;</toast>",
    "<toast a=1/>",
    "<toast a='1' a='2'/>", "<toast a='<'/>", "<toast>a]]>b</toast>", "<toast a='1'b='2'/>", "<toast>\u{1}</toast>",
    "<!DOCTYPE toast><toast/>", "<toast><!-- </toast>", "<toast>&#0;</toast>", "<toast>&#xFFFF;</toast>", "x<toast/>",
    "<toast/>x",
    "< toast/>", "<1/>",
  ])
  func refusesWhatIsNot(_ text: String) {
    #expect(XMLText.rootElement(of: Array(text.utf8)) == nil)
  }

  @Test func textThatIsNotUTF8IsRefused() {
    #expect(XMLText.rootElement(of: Array("<toast>".utf8) + [0xFF] + Array("</toast>".utf8)) == nil)
  }
}
