package need

import "flag"

// Covered returns the options with which a test starts its own program again, so that what that
// runs counts as run by the test: none unless the data of coverage are written to a directory
// ("-test.gocoverdir").
func Covered() []string {
	f := flag.Lookup("test.gocoverdir")
	if f == nil || f.Value.String() == "" {
		return nil
	}
	return []string{"-test.gocoverdir=" + f.Value.String()}
}
