package render

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"orrery/internal/site"
)

// thousand returns a site with a thousand nodes.
func thousand() *site.Site {
	s := observatory()
	s.Nodes = nil
	for i := range 1000 {
		s.Nodes = append(s.Nodes, site.Node{
			Name: fmt.Sprint("n", i), ID: i + 1, Roles: []string{"receptor"},
			NICs: []site.NIC{{Network: "cam", Address: site.AddressAfter(netip.MustParseAddr("10.1.0.0"), i)}},
		})
	}
	return s
}

// TestTemplatesEnd: any template terminates with limited time and memory.
func TestTemplatesEnd(t *testing.T) {
	v := New(thousand())
	const end = "takes too long"
	for template, want := range map[string]string{
		"a\n{{range .Nodes}}{{range $.Nodes}}\n{{range $.Nodes}}{{end}}{{end}}{{end}}": "roles/portal/x.tmpl:3: the template " + end,
		`{{range 1000000000000}}{{end}}`:                                               "roles/portal/x.tmpl:1: the template " + end,
		`{{range 1000000000000}}{{continue}}x{{end}}`:                                  end,
		// text/template itself limits the recursion depth
		`{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`:                                                           "template",
		`{{define "a"}}{{if lt (len .) 60}}{{template "a" (print . "x")}}{{template "a" (print . "y")}}{{end}}{{end}}{{template "a" ""}}`: end,
		`{{if true}}{{with 1}}{{range $.Nodes}}{{range $.Nodes}}{{range $.Nodes}}{{.}}{{else}}{{end}}{{end}}{{end}}{{end}}{{end}}`:        "writes more than 16 MiB",
		`{{range .Nodes}}{{range $.Nodes}}` + strings.Repeat("0123456789", 10) +
			`{{end}}{{end}}`: "writes more than 16 MiB",
		`{{$x := "xx"}}{{range 60}}{{$x = printf "%s%s" $x $x}}{{end}}`:                       "writes more than 16 MiB",
		`{{$x := "xx"}}{{range 60}}{{$x = print $x $x}}{{end}}`:                               "writes more than 16 MiB",
		`{{$x := "xx"}}{{range 60}}{{$x = quote $x}}{{$x = json $x}}{{end}}`:                  "writes more than 16 MiB",
		`{{$x := "<<"}}{{range 60}}{{$x = html $x}}{{$x = js $x}}{{$x = urlquery $x}}{{end}}`: "",
		`{{$x := "xxxxxxxx"}}{{range 17}}{{$x = print $x $x}}{{end}}{{join $x .Nodes}}`:       "writes more than 16 MiB",
		`{{$x := "xxxxxxxx"}}{{range 16}}{{$x = print $x $x}}{{end}}{{printf "` + strings.Repeat("%[1]s", 9999) +
			`" $x}}`: "writes more than 16 MiB",
		`{{printf "%999999999d" 1}}`:  "a width above 999",
		`{{printf "%.1000000f" 1.0}}`: "a width above 999",
		`{{printf "%*d" 1000000 1}}`:  "a width above 999",
		`{{range $i, $n := .Nodes}}{{range $j, $m := $.Nodes}}{{len (select (printf "n%d,n%d" $i $j))}}{{end}}{{end}}`: end,
		`{{range .Nodes}}{{range $.Nodes}}` + strings.Repeat("{{$x := 1}}", 1000) + `{{end}}{{end}}`:                   end,
		strings.Repeat("{{if 1}}", 100_000) + strings.Repeat("{{end}}",
			100_000): "the template has more than 1 MiB",
		strings.Repeat("{{if 1}}", 60_000) + strings.Repeat("{{end}}", 60_000): "",
		strings.Repeat("(", 1_000_000):                                         "",
		"{{" + strings.Repeat("(", 1_000_000):                                  "roles/portal/x.tmpl:1: ",
	} {
		begun := time.Now()
		text, err := v.File(portal, &site.File{Path: "/etc/x", Template: "x.tmpl", Content: []byte(template)}, "n0",
			Placeholder)
		delete(v.parsed, "portal/x.tmpl")
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (want == "") != (err == nil) || !strings.Contains(got, want) || len(got) > 1000 {
			t.Errorf("%.100s: %.500v, not %s", template, err, want)
		}
		if took := time.Since(begun); took > 30*time.Second || len(text.Content) > maxText {
			t.Errorf("%.100s: %v, %d bytes", template, took, len(text.Content))
		} else {
			t.Logf("%v %.60s", took.Round(time.Millisecond), template)
		}
	}
}

// TestOrdinaryTemplates: ordinary templates on a large site stay within the limits.
func TestOrdinaryTemplates(t *testing.T) {
	v := New(thousand())
	for template, want := range map[string]string{
		`{{range .Nodes}}{{.Address}} {{.Name}}{{range $.Nodes}}{{end}}
{{end}}`: "10.1.0.0 n0\n10.1.0.1 n1\n",
		`{{range $i, $n := .Nodes}}{{if $i}}, {{end}}{{printf "%-10s|%04d" $n.Name $n.ID}}{{end}}`: "n0        |0001, n1        |0002",
		`{{print "a" 1 2 "b"}} {{println "x" 1}}{{html "<a>"}} {{js "'"}} {{urlquery "a b"}}`:      "a1 2b x 1\n&lt;a&gt; \\' a+b",
		`{{printf "%d%% of %v %q" 5 .Node.Groups "x"}}`:                                            `5% of [] "x"`,
		`{{range .Nodes}}{{else}}none{{end}}{{define "l"}}{{.}}{{end}}{{template "l" 3}}`:          "3",
		`{{range .Nodes}}{{if eq .Name "n3"}}{{.ID}}{{break}}{{end}}{{end}}`:                       "4",
	} {
		text, err := v.File(portal, &site.File{Path: "/etc/x", Template: "x.tmpl", Content: []byte(template)}, "n0",
			Placeholder)
		delete(v.parsed, "portal/x.tmpl")
		if err != nil || !strings.HasPrefix(string(text.Content), want) {
			t.Errorf("%s: %v\n%.60s", template, err, text.Content)
		}
	}
}
