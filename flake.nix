# For Nix: `nix run . -- run` in a checkout.
{
  description = "A laboratory for virtual-memory performance";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "pagelab";
          version = "0.2.0";
          src = ./.;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "-p" "pagelab" "-p" "pagelab-tracer" "-p" "pagelab-preload" ];
          # The tests want root, kernels and a browser.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles pkgs.makeWrapper ];
          postInstall = ''
            mkdir -p $out/lib/pagelab
            mv $out/lib/libpagelab_tracer.so $out/lib/libpagelab_preload.so $out/lib/pagelab/
            $out/bin/pagelab man man && installManPage man/*.1
            for shell in bash zsh fish; do
              installShellCompletion --cmd pagelab --$shell <($out/bin/pagelab completions $shell)
            done
            wrapProgram $out/bin/pagelab --suffix PATH : ${pkgs.lib.makeBinPath [ pkgs.qemu pkgs.e2fsprogs ]}
          '';
        };
      });
    };
}
