package need

import "flag"

// Covered returns the options with which a test starts its own program again, so that code run
// there counts as run by the test. It returns none unless coverage data is written to a directory
// ("-test.gocoverdir").
func Covered() []string {
	f := flag.Lookup("test.gocoverdir")
	if f == nil || f.Value.String() == "" {
		return nil
	}
	return []string{"-test.gocoverdir=" + f.Value.String()}
}
