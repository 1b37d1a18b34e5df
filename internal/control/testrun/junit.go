package testrun

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"orrery/internal/text/pattern"
	"orrery/internal/text/sanitize"
)

// A Report describes one run of the tests of a site.
type Report struct {
	Site       string
	Host       string
	Began      time.Time
	Took       time.Duration
	Properties [][2]string
	Results    []Result
}

// Count returns the number of tests with an outcome.
func (r *Report) Count(o Outcome) int {
	n := 0
	for _, result := range r.Results {
		if result.Outcome == o {
			n++
		}
	}
	return n
}

// OK reports whether no test failed or broke.
func (r *Report) OK() bool { return r.Count(Failed)+r.Count(Errored) == 0 }

// The elements of JUnit's XML, as read by Jenkins and GitLab.
type (
	xmlSuites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Time     string   `xml:"time,attr"`
		Suite    xmlSuite `xml:"testsuite"`
	}
	xmlSuite struct {
		Name       string        `xml:"name,attr"`
		Tests      int           `xml:"tests,attr"`
		Failures   int           `xml:"failures,attr"`
		Errors     int           `xml:"errors,attr"`
		Skipped    int           `xml:"skipped,attr"`
		Time       string        `xml:"time,attr"`
		Timestamp  string        `xml:"timestamp,attr"`
		Hostname   string        `xml:"hostname,attr"`
		Properties []xmlProperty `xml:"properties>property,omitempty"`
		Cases      []xmlCase     `xml:"testcase"`
	}
	xmlProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	xmlCase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Time    string   `xml:"time,attr"`
		Skipped *xmlWhy  `xml:"skipped"`
		Error   *xmlWhy  `xml:"error"`
		Failure *xmlWhy  `xml:"failure"`
		Output  *xmlText `xml:"system-out"`
	}
	xmlText struct {
		Text string `xml:",cdata"`
	}
	xmlWhy struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",cdata"`
	}
)

// WriteJUnit writes the report as JUnit's XML.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := xmlSuite{
		Name: r.Site, Tests: len(r.Results), Failures: r.Count(Failed), Errors: r.Count(Errored), Skipped: r.Count(Skipped),
		Time: seconds(r.Took), Timestamp: r.Began.UTC().Format("2006-01-02T15:04:05"), Hostname: r.Host,
	}
	for _, p := range r.Properties {
		suite.Properties = append(suite.Properties, xmlProperty{p[0], plainText(p[1])})
	}
	for _, result := range r.Results {
		suite.Cases = append(suite.Cases, caseOf(r.Site, result))
	}
	all := xmlSuites{Name: r.Site, Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Time: suite.Time,
		Suite: suite}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func caseOf(site string, r Result) xmlCase {
	c := xmlCase{Name: r.Name, Class: site, Time: seconds(r.Took)}
	if r.Output != "" {
		c.Output = &xmlText{plainText(r.Output)}
	}
	if r.Node != "" {
		c.Class += "." + r.Node
	}
	first, _, _ := strings.Cut(r.Reason, "\n")
	why := &xmlWhy{Message: plainText(first), Type: string(r.Outcome), Text: plainText(r.Reason)}
	switch r.Outcome {
	case Failed:
		c.Failure = why
	case Errored:
		c.Error = why
	case Skipped:
		c.Skipped = &xmlWhy{Message: why.Message}
	}
	return c
}

// seconds formats a duration as xs:decimal, which has no exponent.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

var escapeSequences = pattern.New("\x1b\\[[0-9;?]*[A-Za-z]")

// plainText removes terminal colours and makes other control characters visible. XML cannot contain
// most of them, and they could mislead readers.
func plainText(text string) string {
	return sanitize.Text(strings.ReplaceAll(escapeSequences().ReplaceAllString(text, ""), "\r", ""))
}
