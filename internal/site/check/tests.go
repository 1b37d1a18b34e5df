package check

import (
	"fmt"
	"time"

	"orrery/internal/site"
)

// maxTest is the maximum timeout of a test. Tests are meant to run overnight.
const maxTest = 24 * time.Hour

func checkTests(ix *index, found *findings) {
	nodes := map[string]bool{}
	if len(ix.Tests) > 0 {
		nodes = toSet(names(ix.Nodes, func(n *site.Node) string { return n.Name }))
	}
	for _, t := range ix.Tests {
		if !fileNamePattern().MatchString(t.Name) {
			found.report(at("test", t.Name), `letters, digits, "_", "." and "-"`, "test name %q is not valid", t.Name)
		}
		switch {
		case t.Node == "":
			found.report(at("test", t.Name, "node"), "set the node that runs it", "test %s has no node", t.Name)
		case !nodes[t.Node]:
			found.reportUnknown(at("test", t.Name, "node"), "node", t.Node,
				names(ix.Nodes, func(n *site.Node) string { return n.Name }))
		}
		switch {
		case len(t.Command) == 0:
			found.report(at("test", t.Name, "command"), `such as ["pytest", "/usr/share/karoo/tests"]`,
				"test %s has no command", t.Name)
		case t.Command[0] == "":
			found.report(at("test", t.Name, "command"), `such as ["pytest", "/usr/share/karoo/tests"]`,
				"the command is empty")
		}
		if !account().MatchString(t.User) {
			found.report(at("test", t.Name, "user"), `such as "root"`, "user %q is not valid", t.User)
		}
		if t.Timeout <= 0 || t.Timeout > maxTest {
			found.report(at("test", t.Name, "timeout"), fmt.Sprintf("more than 0, at most %.0fh", maxTest.Hours()),
				"timeout %s is out of range", t.Timeout)
		}
	}
}
