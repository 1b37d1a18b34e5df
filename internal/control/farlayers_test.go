package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control/layers"
	"orrery/internal/control/sites"
	"orrery/internal/problem"
)

// TestFarLayers: the stores of all hosts are listed, verified and cleaned separately. If a host
// does not answer, its layers are missing in the list, and that is reported.
func TestFarLayers(t *testing.T) {
	d, _ := farDisks(t)
	rows, err := layers.List(t.Context(), d.Session, layers.All)
	d.must(err)
	on := map[string]int{}
	for _, r := range rows {
		on[r.Host]++
		if !r.Used {
			t.Errorf("nobody uses %s on %s", r.Title, r.Host)
		}
	}
	if on["sv1"] == 0 || on["sv2"] == 0 || len(on) != 2 {
		t.Fatalf("the layers are %+v", rows)
	}
	own, err := layers.List(t.Context(), d.Session)
	d.must(err)
	if len(own) != on["sv1"] || own[0].Host != "" {
		t.Errorf("of this machine: %+v", own)
	}
	told := map[string]int{}
	d.must(layers.Verify(t.Context(), d.Session, []string{"sv2"}, nil, func(host, _ string, _ error) { told[host]++ }))
	if told["sv2"] != on["sv2"] || len(told) != 1 {
		t.Errorf("told is %v", told)
	}
	d.must(layers.Verify(t.Context(), d.Session, []string{"sv2"}, []string{"../x"},
		func(_, _ string, wrong error) { d.wantExit(wrong, problem.Usage, "not the digest") }))
	gone, err := layers.Remove(t.Context(), d.Session, layers.All)
	d.must(err)
	if len(gone) > 0 {
		t.Errorf("gone are %+v", gone)
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	if gone, err = layers.Remove(t.Context(), d.Session, "sv2"); err != nil || len(gone) != on["sv2"] ||
		gone[0].Host != "sv2" || gone[0].Title == "" {
		t.Errorf("gone are %+v: %v", gone, err)
	}
	_, err = layers.List(t.Context(), d.Session, "sv3")
	d.wantExit(err, problem.Usage, "no host is called", "sv1, sv2")
	d.Links.Close()
	d.machine.others = nil
	rows, err = layers.List(t.Context(), d.Session, layers.All)
	if err == nil || !strings.Contains(err.Error(), "nobody answers") || len(rows) != on["sv1"] {
		t.Errorf("with a silent host: %+v, %v", rows, err)
	}
}
