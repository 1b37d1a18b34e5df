package role

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// runStep runs one step of a role. Its script must already be in place.
func runStep(ctx context.Context, in host.Runner, r *site.Role, s *site.Step, env []string, log io.Writer,
	where string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("not finished within %s", s.Timeout))
	defer cancel()
	script := scriptOf(r, s)
	fmt.Fprintf(log, "--- role %s: step %s\n", r.Name, s.Name)
	args := append(slices.Clone(s.Interpreter), script)
	err := in.Run(ctx, host.Command{Args: args, Env: env, User: s.User, Stdout: log, Stderr: log})
	if err == nil {
		return nil
	}
	line := s.Line
	at := r.Dir + "/role.toml"
	if s.Run != "" {
		at, line = r.Dir+"/"+s.Run, 0
	}
	if line > 0 {
		at = fmt.Sprintf("%s:%d", at, line)
	}
	p := problem.New(problem.Failed, "role %s: step %q failed on %s", r.Name, s.Name, where).At(at).Because(stepError(err))
	return p
}

// stepError removes the path of the step's script from the error, because it means nothing to the
// user.
func stepError(err error) error {
	var run *host.RunError
	if errors.As(err, &run) {
		run.Command = run.Command[:max(0, len(run.Command)-1)]
	}
	return err
}

// scriptOf returns the path of a step's script, which any interpreter can read.
func scriptOf(r *site.Role, s *site.Step) string {
	return fmt.Sprintf("%s/.step-%d", Dir(r.Name), s.Line)
}

// putRoleFiles installs the other files of a role's directory where steps find them, together with the
// scripts of the steps for that time.
func putRoleFiles(ctx context.Context, in host.Runner, r *site.Role, names []string, when string) error {
	files := []host.File{{Path: Dir(r.Name) + "/role", Content: []byte(r.Name + "\n"), Mode: 0o644}}
	for i := range r.Steps {
		if s := &r.Steps[i]; s.When == when {
			files = append(files, host.File{Path: scriptOf(r, s), Content: s.Script, Mode: 0o755})
		}
	}
	for _, name := range names {
		files = append(files, host.File{Path: Dir(r.Name) + "/" + name, Content: r.Beside[name], Mode: 0o755})
	}
	return in.Put(ctx, files...)
}

func roleFileNames(r *site.Role) []string { return slices.Sorted(maps.Keys(r.Beside)) }
