package org.apache.iceberg.rest;

import java.io.File;
import java.io.FileReader;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Files;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/** Iceberg's own REST catalog, as its RESTCatalogServer starts it, but on loopback only and without Hadoop. */
public final class LoopbackCatalog {
  private LoopbackCatalog() {}

  /** Arguments: a properties file, the port. */
  public static void main(String[] arguments) throws Exception {
    Properties given = new Properties();
    try (FileReader reader = new FileReader(arguments[0])) {
      given.load(reader);
    }
    Map<String, String> properties = new HashMap<>();
    given.forEach((name, value) -> properties.put((String) name, (String) value));

    Catalog catalog = CatalogUtil.buildIcebergCatalog("rest_backend", properties, null);
    RESTCatalogAdapter adapter =
        new RESTServerCatalogAdapter(new RESTCatalogServer.CatalogContext(catalog, properties));
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    Server server =
        new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1])));
    server.setHandler(context);
    server.start();
    server.join();
  }

  /** Files of this machine. */
  public static final class LocalFiles implements FileIO {
    @Override
    public InputFile newInputFile(String path) {
      return Files.localInput(local(path));
    }

    @Override
    public OutputFile newOutputFile(String path) {
      return Files.localOutput(local(path));
    }

    @Override
    public void deleteFile(String path) {
      local(path).delete();
    }

    private static File local(String path) {
      return new File(path.replaceFirst("^file:/+", "/"));
    }
  }
}
