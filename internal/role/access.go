package role

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// revokeKeys removes the authorized_keys of a node for which the site no longer declares any, or for
// another user than before. Otherwise those people could still log in.
func revokeKeys(ctx context.Context, j *Job) error {
	var files []string
	for _, part := range slices.Sorted(maps.Keys(j.Was.Parts)) {
		file, ok := strings.CutPrefix(part, spec.AccessPart(""))
		if _, still := j.Is.Parts[part]; ok && !still && !hasFile(j.Duties, file) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil
	}
	j.Say("authorized_keys: remove")
	if err := j.In.Run(ctx, host.Command{Args: append([]string{"rm", "-f", "--"}, files...)}); err != nil {
		return fmt.Errorf("authorized_keys: remove: %w", err)
	}
	return nil
}

// hasFile reports whether a role of the node now has the file.
func hasFile(d *spec.RoleActions, path string) bool {
	return slices.ContainsFunc(d.Roles, func(r spec.RoleAction) bool {
		return slices.ContainsFunc(r.Files, func(f site.File) bool { return f.Path == path })
	})
}
