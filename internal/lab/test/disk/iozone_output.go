package disk

import (
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

var iozoneVersion = pattern.New(`\$Revision: (\S+) \$`)

// parseIozone parses the table that iozone prints and returns the rates of the columns in ways, in
// B/s. After a header that ends with "frewrite fread freread" there is one line: file size and
// record size in KiB, then KiB/s for each requested test.
func parseIozone(text string) (rates []float64, version string, err error) {
	if found := iozoneVersion().FindStringSubmatch(text); found != nil {
		version = found[1]
	}
	fit := func(what string) error {
		return problem.New(problem.Failed, "the output of iozone %s (%d bytes in total)", what, len(text)).
			Try("check whether it was killed The lab reads what 3.489 prints with -i 0 -i 1 -i 2")
	}
	if !strings.Contains(text, "Output is in kBytes/sec") {
		return nil, version, fit("does not say that it is in kBytes/sec")
	}
	_, table, ok := strings.Cut(text, "frewrite    fread  freread\n")
	if !ok {
		return nil, version, fit("has no table")
	}
	if !strings.Contains(table, "iozone test complete.") {
		return nil, version, fit("ends in the middle of its table")
	}
	line, _, _ := strings.Cut(table, "\n")
	words := strings.Fields(line)
	if len(words) != 2+len(iozoneColumns) {
		return nil, version, fit("has " + strconv.Itoa(len(words)) + " columns instead of " +
			strconv.Itoa(2+len(iozoneColumns)))
	}
	for _, w := range words[2:] {
		n, err := strconv.ParseFloat(w, 64)
		if err != nil || n <= 0 {
			return nil, version, fit("has " + strconv.Quote(w) + " for a rate")
		}
		rates = append(rates, n*1024)
	}
	return rates, version, nil
}
