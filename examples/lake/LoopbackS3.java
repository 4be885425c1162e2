package keptlog;

import com.adobe.testing.s3mock.S3MockApplication;
import org.apache.catalina.connector.Connector;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.Banner;
import org.springframework.boot.builder.SpringApplicationBuilder;

/** S3Mock, as its S3MockApplication starts it, but on loopback only and without TLS. */
public final class LoopbackS3 {
  private LoopbackS3() {}

  /** Arguments: the port, the folder that keeps buckets and objects. */
  public static void main(String[] arguments) {
    new SpringApplicationBuilder(S3MockApplication.class, OnLoopback.class)
        .bannerMode(Banner.Mode.OFF)
        .run(
            "--server.address=127.0.0.1",
            "--server.ssl.enabled=false",
            "--server.port=" + arguments[0],
            "--http.port=0",
            "--logging.level.root=WARN",
            "--com.adobe.testing.s3mock.store.root=" + arguments[1],
            "--com.adobe.testing.s3mock.store.retain-files-on-exit=true");
  }

  /** S3Mock has a second port, which would be open on all interfaces. */
  public static class OnLoopback implements BeanPostProcessor {
    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
      if (bean instanceof Connector connector) {
        connector.setProperty("address", "127.0.0.1");
      }
      return bean;
    }
  }
}
