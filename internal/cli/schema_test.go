package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestSchema: schema prints JSON, and refuses what has none.
func TestSchema(t *testing.T) {
	for _, of := range []string{"site", "role"} {
		var out, errs strings.Builder
		status := Run([]string{"schema", of}, nil, nil, &out, &errs)
		var schema struct{ Title string }
		if err := json.Unmarshal([]byte(out.String()), &schema); err != nil || status != 0 ||
			schema.Title != of+".toml of Orrery" {
			t.Errorf("schema %s: status %d, %+v %v %s", of, status, schema, err, errs.String())
		}
	}
	var out, errs strings.Builder
	if status := Run([]string{"schema", "sites"}, nil, nil, &out, &errs); status != int(problem.Usage) ||
		!strings.Contains(errs.String(), "write site or role") {
		t.Errorf("schema sites: status %d, %s", status, errs.String())
	}
}
